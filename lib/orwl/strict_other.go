//go:build !linux

package orwl

import (
	"errors"

	"fairway/lib/orwl/internal/memory"
)

type strictView struct{}

func strictMapping(*memory.File, int, *Handle, string, Mode) ([]byte, error) {
	return nil, errors.ErrUnsupported
}

func retireViews(*Handle) {}

// PanicOnFault does nothing where there is no strict mode.
func PanicOnFault() {}

// ExplainFault does nothing where there is no strict mode.
func ExplainFault() {}
