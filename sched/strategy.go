package sched

// Strategy restricts how the server detects the events of a kind.
type Strategy int

const (
	// Adaptive leaves the choice to the server, which makes it from the times
	// that earlier events of the kind took to come.
	Adaptive Strategy = iota
	// PollOnly never blocks a thread, unless the kind cannot be polled.
	PollOnly
	// BlockOnly polls only to arm, unless the kind cannot block.
	BlockOnly
)

// adaptation is what a source has learnt about its events.
type adaptation struct{}

func (a *adaptation) init(h hooks) {}

func (a *adaptation) ended(e *entry) {}

func (src *source) wantsBlock() bool { return src.strategy != PollOnly }

func (src *source) spin() bool { return false }
