package rights

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"strings"
	"time"

	"fairway/internal/taskqueue"
)

// A token is the text fairway_NUMBER_SECRET: so what scans for lost secrets can find it. Its number
// is no secret.
const (
	tokenPrefix = "fairway_"
	// NumberLength and SecretLength are those of the parts of a token, in characters of base 32.
	NumberLength = 10
	SecretLength = 52
)

// Token is what a server keeps of a token: no secret.
type Token struct {
	Number  string    `json:"-"` // that of its record
	User    string    `json:"user,omitempty"`
	Groups  []string  `json:"groups,omitempty"` // that the identity provider has named
	Role    Role      `json:"role"`
	Site    string    `json:"site,omitempty"` // of a pilot
	Hash    []byte    `json:"hash"`           // [HashKey.Hash] of the text
	Issued  time.Time `json:"issued"`
	Expires time.Time `json:"expires,omitzero"` // zero: never
	By      string    `json:"by,omitempty"`     // who has made it
	How     Proof     `json:"how"`              // ByToken or ByLogin
	Note    string    `json:"note,omitempty"`
	State   string    `json:"state"` // [HashKey.State] of the server for which it was made
}

// Limits of tokens.
const (
	// MaxNote bounds a note, in bytes.
	MaxNote = 200
	// MaxLife bounds the time of a token that expires.
	MaxLife = 10 * 365 * 24 * time.Hour
)

// Text puts a token together.
func Text(number, secret string) string { return tokenPrefix + number + "_" + secret }

// Split takes a token apart. ok is false for what no server has made.
func Split(text string) (number, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, tokenPrefix)
	if !ok || len(rest) != NumberLength+1+SecretLength || rest[NumberLength] != '_' {
		return "", "", false
	}
	number, secret = rest[:NumberLength], rest[NumberLength+1:]
	return number, secret, inBase32(number, 'a') && inBase32(secret, 'A')
}

func inBase32(text string, first byte) bool {
	for i := range len(text) {
		if c := text[i]; (c < first || c > first+25) && (c < '2' || c > '7') {
			return false
		}
	}
	return true
}

// HashKey is a secret of one server, for its tokens. In a copy of its folder it is another one.
type HashKey [sha256.Size]byte

// Hash is what is kept of a token. Without the key it tells nothing of the text, and no other server
// can use it.
func (k HashKey) Hash(text string) []byte {
	h := hmac.New(sha256.New, k[:])
	h.Write([]byte(text))
	return h.Sum(nil)
}

// State tells the tokens of one server from those of its copies.
func (k HashKey) State() string { return fmt.Sprintf("%x", k.Hash("state")[:8]) }

// Why a token is refused. What was revoked, forged, or made by another server is answered alike: who
// guesses learns nothing.
var (
	ErrBadToken = errors.New("the token is not good here: it was revoked, is another server's, or never was one; " +
		"ask an administrator of the server for another one")
	ErrExpired = errors.New("the token has expired")
)

// Check is nil if a text is that of a token that is good now. How long it takes tells nothing of the
// right text. t is nil where no token has the number.
func (k HashKey) Check(t *Token, text string, now time.Time) error {
	sum, kept := k.Hash(text), make([]byte, sha256.Size)
	if t != nil && len(t.Hash) == len(kept) {
		copy(kept, t.Hash)
	}
	right := subtle.ConstantTimeCompare(sum, kept) == 1
	switch {
	case t == nil || !right:
		return ErrBadToken
	case !t.Good(now):
		return fmt.Errorf("%w at %s; ask an administrator of the server for another one, or `fairway login`", ErrExpired,
			t.Expires.UTC().Format(time.RFC3339))
	}
	return nil
}

// Good reports whether a token has not expired.
func (t *Token) Good(now time.Time) bool { return t.Expires.IsZero() || now.Before(t.Expires) }

// Principal is who has the token.
func (t *Token) Principal() Principal {
	return Principal{User: t.User, Groups: t.Groups, Role: t.Role, Token: t.Number, How: t.How}
}

// Verify refuses a token that cannot be made, with a sentence for a person.
func (t *Token) Verify(now time.Time) error {
	switch {
	case !t.Role.Known():
		return fmt.Errorf("there is no role %.50q: the roles are read, submit, admin and pilot", t.Role)
	case t.Role == Pilot && (t.Site == "" || t.User != ""):
		return errors.New("a token of a pilot names its site, and no user")
	case t.Role != Pilot && t.Site != "":
		return errors.New("only tokens of pilots name a site")
	case t.Role != Pilot && !taskqueue.NamesShare(t.User):
		return fmt.Errorf("%.100q cannot be the name of a user: write a name without /, spaces and control characters",
			t.User)
	case !t.Expires.IsZero() && !t.Expires.After(now):
		return errors.New("the token would have expired already")
	case !t.Expires.IsZero() && t.Expires.Sub(now) > MaxLife:
		return errors.New("a token expires within ten years, or never")
	case len(t.Note) > MaxNote:
		return fmt.Errorf("the note has %d bytes, and may have %d", len(t.Note), MaxNote)
	}
	return nil
}
