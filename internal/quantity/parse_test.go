package quantity

import (
	"errors"
	"math/big"
	"strconv"
	"testing"
)

func TestWhole(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "0020": 20, "9223372036854775807": 1<<63 - 1} {
		if got, err := Whole(text); got != want || err != nil {
			t.Errorf("%s: %d %v", text, got, err)
		}
	}
	for _, text := range []string{"", " 1", "1 ", "+1", "-1", "0x10", "1e3", "1_0", "1.0", "١", "1\n"} {
		if got, err := Whole(text); !errors.Is(err, ErrForm) {
			t.Errorf("%q: %d %v", text, got, err)
		}
	}
	if got, err := Whole("9223372036854775808"); !errors.Is(err, ErrRange) {
		t.Errorf("2^63: %d %v", got, err)
	}
}

func TestDecimal(t *testing.T) {
	for text, want := range map[string]float64{"0.5": 0.5, "010": 10, "2": 2} {
		if got, err := Decimal(text); got != want || err != nil {
			t.Errorf("%s: %v %v", text, got, err)
		}
	}
	for _, text := range []string{"", ".", ".5", "5.", "1.2.3", "inf", "NaN", "0x1p-2", "1e3", "-1", "1,5"} {
		if got, err := Decimal(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// Whole takes digits alone, and gives the number that they are.
func FuzzWhole(f *testing.F) {
	for _, text := range []string{"0", "0020", "-1", "9223372036854775808", "1e3"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Whole(text)
		if err != nil {
			return
		}
		exact, ok := new(big.Int).SetString(text, 10)
		if !ok || exact.Sign() < 0 || exact.String() != strconv.FormatInt(got, 10) {
			t.Fatalf("%q: %d", text, got)
		}
		if again, err := Decimal(text); err != nil || int64(again) != got && got < 1<<53 {
			t.Fatalf("%q: %v %v", text, again, err)
		}
	})
}
