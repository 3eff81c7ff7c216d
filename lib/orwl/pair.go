package orwl

import "context"

// Pair is two handles on one resource that take turns, for iterations
// (section 3.3): Release posts the request for the next iteration and then
// releases the current one. Its zero value is ready for use. It must not be
// copied, and belongs to one task at a time.
type Pair struct {
	handles [2]Handle
	current int
}

// ReadRequest binds the pair to r for reading and posts the first request.
func (p *Pair) ReadRequest(r Resource) error { return p.now().ReadRequest(r) }

// WriteRequest binds the pair to r for writing and posts the first request.
func (p *Pair) WriteRequest(r Resource) error { return p.now().WriteRequest(r) }

// SetName sets the name of both handles.
func (p *Pair) SetName(name string) { p.handles[0].Name, p.handles[1].Name = name, name }

// Acquire waits for the current request as Handle.Acquire does. When it fails
// the pair has no request any more.
func (p *Pair) Acquire(ctx context.Context) error {
	h := p.now()
	if !h.pending || h.req.Owner != h {
		return h.fate()
	}
	if ctx != context.Background() || h.detour {
		return h.wait(ctx)
	}
	h.token.Take() // here, as in Handle.Acquire
	h.pending = false
	return h.fate()
}

// Test reports whether the current request is granted.
func (p *Pair) Test() (bool, error) { return p.now().Test() }

// Release posts the next request and releases the current one. When the next
// is refused the current one is released all the same. At a Mirror the next Acquire says
// whether the release has arrived, as with Handle.Release.
func (p *Pair) Release() error {
	cur := p.now()
	if !cur.holds() {
		return cur.refuse(ErrNotHeld)
	}
	p.current ^= 1
	return cur.res.cycle(cur, p.now())
}

// Cancel ends the pair: its requests leave the queue at once, without waiting;
// a granted one is released.
func (p *Pair) Cancel() error { return p.now().Cancel() }

// Finish releases the current request without posting another: the last
// iteration.
func (p *Pair) Finish() error { return p.now().Release() }

// ReadMap returns the data for reading as Handle.ReadMap does.
func (p *Pair) ReadMap() ([]byte, error) { return p.now().ReadMap() }

// WriteMap returns the data for writing as Handle.WriteMap does.
func (p *Pair) WriteMap() ([]byte, error) { return p.now().WriteMap() }

// Resize changes the size of the data as Handle.Resize does.
func (p *Pair) Resize(size int) error { return p.now().Resize(size) }

// Generation returns the number of the current grant.
func (p *Pair) Generation() uint64 { return p.now().Generation() }

func (p *Pair) now() *Handle { return &p.handles[p.current] }

// post is the first half of Release, for a task with several pairs.
func (p *Pair) post() error {
	cur, next := p.now(), &p.handles[p.current^1]
	if !cur.holds() {
		return cur.refuse(ErrNotHeld)
	}
	return cur.res.insert(next, cur.mode)
}

// pass is the second half.
func (p *Pair) pass() error {
	cur := p.now()
	p.current ^= 1
	return cur.Release()
}
