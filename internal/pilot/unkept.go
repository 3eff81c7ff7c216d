package pilot

import "sync"

// unkept chooses the attempts whose sandbox is looked at for files that their step does not declare. They
// go with the sandbox, and a person is told of the first attempt of each step that has some.
type unkept struct {
	mu    sync.Mutex     // guards what follows
	ended map[string]int // attempts of a step that have ended well
	told  map[string]bool
}

// wants reports whether to look at one more attempt of a step: at the first, the second, the fourth and so
// on until some are found, so that it costs many short jobs nothing.
func (u *unkept) wants(step string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.told[step] || len(u.ended) >= maxWatchedSteps && u.ended[step] == 0 {
		return false
	}
	if u.ended == nil {
		u.ended, u.told = map[string]int{}, map[string]bool{}
	}
	u.ended[step]++
	n := u.ended[step]
	return n&(n-1) == 0
}

func (u *unkept) tell(step string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.told[step] = true
}

// noteUnkept tells of files that the command of an attempt made, which ended well, and that are not kept.
func (p *pilot) noteUnkept(a *attempt) {
	if a.Payload.GetUnwatched() || a.Payload.GetReplay() != nil || !p.unkept.wants(a.GetStep()) {
		return
	}
	if a.NoteUndeclared() {
		p.unkept.tell(a.GetStep())
	}
}
