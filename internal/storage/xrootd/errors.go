package xrootd

import (
	"fmt"
	"io/fs"

	"fairway/internal/storage"
)

// Error codes of the protocol that are told apart.
const (
	codeArgument    = 3000
	codeNoSpace     = 3009
	codeDenied      = 3010
	codeMissing     = 3011
	codeUnsupported = 3013
	codeExists      = 3018
	codeQuota       = 3021
	codeReadOnly    = 3025
	codeNobody      = 3030
)

// Error is what a client has said when it failed.
type Error struct {
	PFN     string
	Program string
	Code    int    // of the server; 0: none, so the network failed
	Text    string // its last line
}

func (e *Error) Error() string { return fmt.Sprintf("%s: %s: %s", e.PFN, e.Program, e.Text) }

func (e *Error) Unwrap() error {
	switch e.Code {
	case codeMissing:
		return fs.ErrNotExist
	case codeExists:
		return fs.ErrExist
	case codeNoSpace, codeQuota:
		return storage.ErrNoSpace
	case codeReadOnly:
		return storage.ErrReadOnly
	case codeDenied, codeNobody:
		return storage.ErrPermission
	}
	return nil
}

// Temporary reports whether a later attempt may succeed: the network failed, or
// the server says that it is overloaded or broken.
func (e *Error) Temporary() bool {
	switch e.Code {
	case 0, 3005, 3007, 3008, 3012, 3014, 3020, 3024: // disk, memory, server, none, in progress, overloaded
		return true
	}
	return false
}
