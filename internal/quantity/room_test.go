package quantity

import "testing"

// A small number without a unit is meant in units of another system, and refused where memory, a disk or a cache is
// spoken of.
func TestRoomRefusesSmallNumbersWithoutAUnit(t *testing.T) {
	for _, text := range []string{"4", "0.5", "64", "16000", "999999", "1.5"} {
		if bytes, err := Room(text); err == nil {
			t.Errorf("%s is %d", text, bytes)
		}
	}
	for text, want := range map[string]int64{
		"0": 0, "4B": 4, "4KB": 4000, "4GB": 4e9, "1000000": 1e6, "0.5GiB": 1 << 29, "16000MB": 16e9,
	} {
		if bytes, err := Room(text); err != nil || bytes != want {
			t.Errorf("%s is %d, %v", text, bytes, err)
		}
	}
	if _, err := Room("x"); err == nil {
		t.Error("x is a size")
	}
}
