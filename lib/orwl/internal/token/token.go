// Package token wakes one goroutine for one reason: what a request of package orwl has become.
//
// For each wait somebody gives a token, once, and one goroutine, the taker, takes it. What the giver
// did before is visible after the taker has it. The giver touches the Token no more once the taker may
// have the token, so its memory can be used for anything then.
//
// The taker waits by Take, or by receiving from Channel, for as long as it wants to be woken by other
// things as well. Who gives does not know which.
package token
