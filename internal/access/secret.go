package access

import (
	"crypto/rand"
	"encoding/base64"
)

// Token is the secret of one launch.
type Token string

const tokenSize = 32

// NewToken makes a token that nobody can guess.
func NewToken() Token {
	var b [tokenSize]byte
	_, _ = rand.Read(b[:]) // never fails
	return Token(base64.RawURLEncoding.EncodeToString(b[:]))
}

// String hides the token, so that no log shows it by accident.
func (t Token) String() string { return "(a token)" }

// GoString hides the token too.
func (t Token) GoString() string { return t.String() }
