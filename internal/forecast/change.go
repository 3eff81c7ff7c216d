package forecast

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Limits of what a change may ask for.
const (
	MaxPilots = 100_000
	maxFactor = 1000
)

// SlotsFactor reads how many slots there are to be: a number, or a multiple of those of the run,
// as in 2x and 0.5x. It gives the multiple.
func (m *Model) SlotsFactor(text string) (float64, error) {
	number, isFactor := strings.CutSuffix(text, "x")
	value, err := strconv.ParseFloat(number, 64)
	switch {
	case err != nil || math.IsNaN(value) || value <= 0:
		return 0, fmt.Errorf("%q is no number of slots; write one such as 16, or a multiple such as 2x", text)
	case isFactor && (value > maxFactor || value < 1.0/maxFactor):
		return 0, fmt.Errorf("%q is out of range; write a multiple from 0.001x to %dx", text, maxFactor)
	case isFactor:
		return value, nil
	case value != math.Trunc(value) || value > MaxPilots:
		return 0, fmt.Errorf("%q is no number of slots; write a whole one up to %d, or a multiple such as 2x", text,
			MaxPilots)
	}
	return value / float64(m.Slots()), nil
}

// FasterStep reads how many times as fast the commands of a step are to be, as in align=2.
func FasterStep(text string) (step string, factor float64, err error) {
	at := strings.LastIndexByte(text, '=')
	if at > 0 {
		factor, err = strconv.ParseFloat(text[at+1:], 64)
	}
	if at <= 0 || err != nil || math.IsNaN(factor) || factor > maxFactor || factor < 1.0/maxFactor {
		return "", 0, fmt.Errorf("%q names no step and factor; write STEP=FACTOR, such as align=2", text)
	}
	return text[:at], factor, nil
}
