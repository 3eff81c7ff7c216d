package disk

import "testing"

func TestBootStays(t *testing.T) {
	first, second := Boot(), Boot()
	if first == "" || first != second {
		t.Errorf("%q, then %q", first, second)
	}
}
