package taskqueue

import (
	"errors"
	"fmt"
)

// ErrRefused is wrapped by every error of dispatch.Core.Step: the input was refused
// and changed nothing.
var ErrRefused = errors.New("refused")

// Refuse makes an error that wraps ErrRefused, and any error among args that the format wraps.
func Refuse(format string, args ...any) error {
	return fmt.Errorf(format+": %w", append(args, ErrRefused)...)
}
