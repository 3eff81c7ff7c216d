//go:build !gc || !go1.26 || go1.27 || race

package token

// Token is one place for a token. Its zero value is ready. It must not be copied.
type Token struct {
	channel chan struct{} // of capacity 1, made by Expect
}

// Expect makes the token ready to be given. Its taker calls it before.
func (t *Token) Expect() {
	if t.channel == nil {
		t.channel = make(chan struct{}, 1)
	}
}

// Give gives the token.
func (t *Token) Give() { t.channel <- struct{}{} }

// Take waits for the token. Not after Channel.
func (t *Token) Take() { <-t.channel }

// TryTake takes the token if it was given. Not after Channel.
func (t *Token) TryTake() bool {
	select {
	case <-t.channel:
		return true
	default:
		return false
	}
}

// Given reports whether the token was given and not taken.
func (t *Token) Given() bool { return len(t.channel) > 0 }

// Channel has the token come by a channel from now on, until the taker calls Taken: when it has received
// it, or knows that it will not be given.
func (t *Token) Channel() <-chan struct{} { return t.channel }

// Taken ends what Channel began.
func (t *Token) Taken() {}
