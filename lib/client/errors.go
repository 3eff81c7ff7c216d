package client

import "errors"

// Code says what kind of error a server answers; docs/api.md has when.
type Code string

// The codes of errors.
const (
	InvalidArgument    Code = "invalid_argument"
	NotFound           Code = "not_found"
	Unauthenticated    Code = "unauthenticated"
	PermissionDenied   Code = "permission_denied"
	AlreadyExists      Code = "already_exists"
	OutOfRange         Code = "out_of_range"
	FailedPrecondition Code = "failed_precondition"
	ResourceExhausted  Code = "resource_exhausted"
	Aborted            Code = "aborted"
	Unavailable        Code = "unavailable" // also: no server answers
	DeadlineExceeded   Code = "deadline_exceeded"
)

// Error is what a server refuses a call with, or says that none answers.
type Error struct {
	Code    Code   `json:"code"`
	Message string `json:"message"` // one sentence for a person

	cause error
}

// Error is part of error.
func (e *Error) Error() string { return e.Message }

// Unwrap is the error below, of a server that did not answer.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf is the code of an error of this package; empty: it has none.
func CodeOf(err error) Code {
	var refusal *Error
	if errors.As(err, &refusal) {
		return refusal.Code
	}
	return ""
}
