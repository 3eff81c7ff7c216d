// Package quantity reads and writes numbers, sizes, times and counts, for all
// files that people write and all that they read.
//
// Each text has one meaning or none. A number is decimal digits, with a point in
// fractions; there are no signs, exponents, other bases, separators, infinities,
// and no number that a variable cannot hold.
package quantity

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Errors of a text that is no number, to be told apart with errors.Is.
var (
	ErrForm  = errors.New("is no number of decimal digits")
	ErrRange = errors.New("is a number too large")
)

// Whole reads a whole number. Zeros before it mean nothing: 0020 is 20.
func Whole(text string) (int64, error) {
	if !isDigits(text) {
		return 0, fmt.Errorf("%q %w", text, ErrForm)
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q %w: the largest is %d", text, ErrRange, int64(math.MaxInt64))
	}
	return n, nil
}

// Decimal reads a number that may have a fraction: digits on both sides of the
// point, if there is one.
func Decimal(text string) (float64, error) {
	whole, fraction, point := strings.Cut(text, ".")
	if !isDigits(whole) || point && !isDigits(fraction) {
		return 0, fmt.Errorf("%q %w, with at most one point among them", text, ErrForm)
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, fmt.Errorf("%q %w", text, ErrRange)
	}
	return n, nil
}

func isDigits(text string) bool {
	return text != "" && strings.Trim(text, "0123456789") == ""
}
