//go:build linux

package listen

import (
	"strings"
	"testing"

	"fairway/internal/wire"
)

// A field that this server does not know is refused in words, since a newer client relies on it; what
// it knows is read as before.
func TestUnknownFieldsOfRequestsAreRefused(t *testing.T) {
	var known, unknown wire.EndingsRequest
	if err := (exactJSON{}).Unmarshal([]byte(`{"run": 3, "jobs": ["a"]}`), &known); err != nil {
		t.Error(err)
	}
	err := exactJSON{}.Unmarshal([]byte(`{"run": 3, "patience": 4}`), &unknown)
	for _, word := range []string{"EndingsRequest", `unknown field "patience"`, "a newer server may know more"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("the error is %v, not with %q", err, word)
		}
	}
}
