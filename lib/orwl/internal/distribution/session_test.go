package distribution

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"fairway/lib/fifo"
	"fairway/lib/orwl/internal/memory"
	"fairway/lib/orwl/internal/transport"
)

// asked is a request of the other process, which says what was called.
type asked struct {
	Request
	in      *there
	decided func()

	insert, cycle, failure error
	holds, writes, keeps   bool
}

func (r *asked) did(what string) {
	r.in.mu.Lock()
	defer r.in.mu.Unlock()
	r.in.did = append(r.in.did, what)
}

func (r *asked) Insert(fifo.Mode, int) error { return r.insert }
func (r *asked) Cycle(Request) error         { r.did("cycle"); return r.cycle }
func (r *asked) Release() error              { r.did("release"); return nil }
func (r *asked) Withdraw() bool              { r.did("withdraw"); return r.keeps }
func (r *asked) Holds() bool                 { return r.holds }
func (r *asked) Writes() bool                { return r.writes }
func (r *asked) Generation() uint64          { return 5 }
func (r *asked) By() string                  { return "somebody" }
func (r *asked) Failure() error              { return r.failure }
func (r *asked) Lose(bool)                   { r.did("lose") }
func (r *asked) MissAtStart()                {}

func (r *asked) Overwrite(size int, _ []memory.Extent, data []byte, _ bool) (uint64, error) {
	r.did(fmt.Sprintf("overwrite %d by %s", size, data))
	return 7, nil
}

// there is a process with one location, which makes requests as it is told.
type there struct {
	Location
	mu       sync.Mutex
	did      []string
	requests []*asked
	next     asked // what the next request is like
	reserve  error
	settled  chan bool
}

func (o *there) Find(name string) (Location, error) {
	if name != "l" {
		return nil, ErrUnknown
	}
	return o, nil
}

func (o *there) Reserve(context.Context, []Wanted) (func(bool), error) {
	return func(keep bool) { o.settled <- keep }, o.reserve
}

func (o *there) Name() string           { return "l" }
func (o *there) Number() uint64         { return 3 }
func (o *there) Size() int              { return 4 }
func (o *there) Mapped() (bool, bool)   { return false, false }
func (o *there) Refuse(err error) error { return fmt.Errorf("location l: %w", err) }
func (o *there) Request(_ string, decided func()) Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	r := o.next
	r.in, r.decided = o, decided
	o.requests = append(o.requests, &r)
	return &r
}

func (o *there) Lacked(bool, uint64, bool) ([]byte, uint64, *memory.File, []memory.Extent) {
	return []byte("data"), 1, nil, nil
}

// done returns what was called since the last time.
func (o *there) done() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	did := strings.Join(o.did, ", ")
	o.did = nil
	return did
}

// conversation is a session, and the process at its other end.
type conversation struct {
	*testing.T
	owner   *there
	session *Session
	here    *transport.Link // of the process that asks
	answers chan transport.Frame
	over    chan error // of the session's connection
}

func converse(t *testing.T) *conversation {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	c := &conversation{
		T: t, owner: &there{settled: make(chan bool, 9)}, answers: make(chan transport.Frame, 99), over: make(chan error, 1),
	}
	connect := func(conn net.Conn, err error, name string) *transport.Link {
		if err != nil {
			t.Error(err)
			return nil
		}
		l, err := transport.Connect(t.Context(), conn, transport.Hello{Process: name, Serves: true, Lease: time.Minute})
		if err != nil {
			t.Error(err)
		}
		return l
	}
	made := make(chan *transport.Link)
	go func() {
		conn, err := net.Dial("tcp", listener.Addr().String())
		made <- connect(conn, err, "here")
	}()
	conn, err := listener.Accept()
	own := connect(conn, err, "there")
	if c.here = <-made; own == nil || c.here == nil {
		t.FailNow()
	}
	c.session = NewSession(own, c.owner, Limits{Requests: 9, Mirrors: 1, Size: 16})
	idle := func() bool { return true }
	own.Use(transport.Handlers{Asked: c.session.Asked, Idle: idle, Answered: func(*transport.Frame) error { return nil }})
	c.here.Use(transport.Handlers{Idle: idle, Answered: func(f *transport.Frame) error {
		c.answers <- *f
		return c.here.Skip()
	}})
	ended := make(chan struct{})
	go func() { c.over <- own.Run() }()
	go func() {
		defer close(ended)
		_ = c.here.Run()
	}()
	t.Cleanup(func() {
		own.Cut()
		c.here.Cut()
		<-ended
	})
	c.asks(transport.Frame{Kind: transport.Open, ID: 1, Text: "l"}, "opened 1")
	return c
}

// hears waits for the next answer.
func (c *conversation) hears(want string) {
	c.Helper()
	f := <-c.answers
	got := fmt.Sprint(map[transport.Kind]string{
		transport.Opened: "opened ", transport.Granted: "granted ", transport.Refused: "refused ",
		transport.Answered: "answered ",
	}[f.Kind], f.ID)
	if f.Code > 0 {
		got += ": " + wireErrors[f.Code].Error()
	}
	if got != want {
		c.Errorf("heard %q (%s); want %q", got, f.Text, want)
	}
}

// asks sends a frame and hears the answer; none if that is empty.
func (c *conversation) asks(f transport.Frame, want string) {
	c.Helper()
	c.here.Send(f)
	if want != "" {
		c.hears(want)
	}
}

// settles has all that was sent before be taken.
func (c *conversation) settles() {
	c.Helper()
	c.asks(transport.Frame{Kind: transport.Sync, ID: 999, OK: true}, "answered 999")
}

// isLike says what the next request is like.
func (c *conversation) isLike(like asked) {
	c.owner.mu.Lock()
	defer c.owner.mu.Unlock()
	c.owner.next = like
}

// posts has a request be made that is like this one, and granted if it holds.
func (c *conversation) posts(id uint64, like asked) *asked {
	c.Helper()
	c.isLike(like)
	c.asks(transport.Frame{Kind: transport.Request, ID: id, Mirror: 1, Mode: fifo.Write}, "")
	c.settles()
	c.owner.mu.Lock()
	r := c.owner.requests[len(c.owner.requests)-1]
	c.owner.mu.Unlock()
	if c.session.find(id) == nil {
		c.Fatalf("request %d is not there", id)
	}
	if like.holds {
		r.decided()
		c.hears(fmt.Sprint("granted ", id))
	}
	return r
}

func (c *conversation) did(want string) {
	c.Helper()
	c.settles()
	if got := c.owner.done(); got != want {
		c.Errorf("it did %q; want %q", got, want)
	}
}

func release(id uint64, change func(*transport.Frame)) transport.Frame {
	f := transport.Frame{Kind: transport.Release, ID: id, Generation: 5}
	if change != nil {
		change(&f)
	}
	return f
}

const stale = ": the grant is over"

// A release counts under the grant that was told, once. What comes with another one is read and forgotten.
func TestReleasesCountUnderTheirGrants(t *testing.T) {
	c := converse(t)
	c.posts(2, asked{holds: true, writes: true})
	c.asks(release(2, func(f *transport.Frame) { f.Generation = 4 }), "refused 2"+stale)
	c.here.SendData(release(8, func(f *transport.Frame) {
		f.OK, f.Size, f.Extents = true, 4, []memory.Extent{{Offset: 0, Length: 4}}
	}), []byte("lost"), nil)
	c.hears("refused 8" + stale)
	c.did("")
	c.here.SendData(release(2, func(f *transport.Frame) {
		f.OK, f.Size, f.Extents = true, 16, []memory.Extent{{Offset: 1, Length: 3}}
	}), []byte("-new"), nil)
	c.did("overwrite 16 by new, release")
	c.asks(release(2, nil), "refused 2"+stale)
	c.posts(2, asked{holds: true}) // the number is free
	c.asks(release(2, func(f *transport.Frame) { f.OK = true }), "refused 2"+stale)
	c.asks(release(2, nil), "")
	c.did("release")
	c.posts(3, asked{})
	c.asks(release(3, nil), "refused 3"+stale)
}

// The next request of a task takes its place with the release, or is refused while the release counts.
func TestReleasesWithTheNextRequest(t *testing.T) {
	c := converse(t)
	c.posts(2, asked{holds: true})
	c.asks(release(2, func(f *transport.Frame) { f.Next = 3 }), "")
	c.did("cycle")
	if c.session.find(3) == nil || c.session.find(2) != nil {
		t.Error("the next request is not there, or the first is")
	}
	c.posts(4, asked{holds: true})
	c.asks(release(4, func(f *transport.Frame) { f.Next = 3 }), "refused 3: the handle has a request already")
	c.did("release")
	c.posts(4, asked{holds: true, cycle: ErrPoisoned})
	c.asks(release(4, func(f *transport.Frame) { f.Next = 5 }), "refused 5: the location lost its writer")
	c.did("cycle")
	if c.session.find(5) != nil {
		t.Error("a request that was refused is there")
	}
}

// A request that cannot stand in the queue, or has failed there, is refused and forgotten.
func TestRequestsThatFail(t *testing.T) {
	c := converse(t)
	c.isLike(asked{insert: ErrFull})
	c.asks(transport.Frame{Kind: transport.Request, ID: 2, Mirror: 1}, "refused 2: the queue of requests is full")
	r := c.posts(2, asked{failure: ErrPoisoned})
	r.decided()
	c.hears("refused 2: the location lost its writer")
	if c.session.find(2) != nil {
		t.Error("a request that failed is there")
	}
}

// Who writes more than a location may have loses the connection.
func TestWritesBeyondTheLimitEndTheConnection(t *testing.T) {
	c := converse(t)
	c.posts(2, asked{holds: true, writes: true})
	c.asks(release(2, func(f *transport.Frame) { f.OK, f.Size = true, 17 }), "")
	if err := <-c.over; !errors.Is(err, ErrTooLarge) {
		t.Errorf("the connection ended by %v", err)
	}
	if got := c.owner.done(); got != "" {
		t.Errorf("it did %q", got)
	}
}

// A reservation is there until it is settled, and nothing is left of one that is refused.
func TestReservationsAreSettledOnce(t *testing.T) {
	c := converse(t)
	reserve := func(id, request uint64) transport.Frame {
		return transport.Frame{
			Kind: transport.Reserve, ID: id, OK: true, Requests: []transport.Posting{{ID: request, Mirror: 1}},
		}
	}
	c.isLike(asked{keeps: true}) // its place in the queue, so that it can be withdrawn
	c.asks(reserve(20, 2), "answered 20")
	c.asks(reserve(20, 3), "answered 20: the handle has a request already")
	if c.session.find(3) != nil || c.session.find(2) == nil || c.session.Unsettled() != 1 {
		t.Errorf("after a second one %d are there", c.session.Unsettled())
	}
	c.asks(transport.Frame{Kind: transport.Cancel, ID: 2}, "") // the reservation decides
	c.did("")
	c.asks(transport.Frame{Kind: transport.Settle, ID: 20, OK: true}, "")
	if kept := <-c.owner.settled; !kept || c.session.Unsettled() != 0 {
		t.Errorf("kept %t, %d are there", kept, c.session.Unsettled())
	}
	c.asks(transport.Frame{Kind: transport.Settle, ID: 20}, "")
	c.asks(transport.Frame{Kind: transport.Cancel, ID: 2}, "")
	c.did("withdraw")

	c.asks(reserve(21, 4), "answered 21")
	c.asks(transport.Frame{Kind: transport.Settle, ID: 21}, "")
	<-c.owner.settled
	c.did("withdraw")

	c.owner.mu.Lock()
	c.owner.reserve = ErrFull
	c.owner.mu.Unlock()
	c.asks(reserve(22, 5), "answered 22: the queue of requests is full")
	if c.session.find(5) != nil || c.session.Unsettled() != 0 {
		t.Error("something is left of a reservation that was refused")
	}
	c.asks(transport.Frame{Kind: transport.Reserve, ID: 23}, "")
	if err := <-c.over; !errors.Is(err, transport.ErrMalformed) {
		t.Errorf("after a reservation of nothing: %v", err)
	}
}

// At the end requests leave the queue, reads are released, and writes whose data may be half there are lost.
func TestWhatIsLeftAtTheEnd(t *testing.T) {
	for want, like := range map[string]asked{
		"withdraw": {keeps: true}, "withdraw, lose": {holds: true, writes: true}, "withdraw, release": {holds: true},
	} {
		c := converse(t)
		r := c.posts(2, like)
		c.session.End()
		if got := c.owner.done(); got != want {
			t.Errorf("at the end it did %q; want %q", got, want)
		}
		r.decided()
		c.settles() // and hears of no grant
	}
	c := converse(t)
	r := c.posts(2, asked{})
	r.holds = true // nobody was told
	c.session.mu.Lock()
	c.session.ended = true
	c.session.mu.Unlock()
	r.decided()
	c.session.End()
	if got := c.owner.done(); got != "withdraw, release" {
		t.Errorf("of a grant that nobody was told it did %q", got)
	}
	c.settles()
}

func TestMirrorsAreBounded(t *testing.T) {
	c := converse(t)
	c.asks(transport.Frame{Kind: transport.Open, ID: 1, Text: "l"}, "opened 1: the handle has a request already")
	c.asks(transport.Frame{Kind: transport.Open, ID: 2, Text: "none"}, "opened 2: the location is not served")
	c.asks(transport.Frame{Kind: transport.Open, ID: 3, Text: "l", OK: true},
		"opened 3: the connection has too many locations open")
	c.asks(transport.Frame{Kind: transport.Open, ID: 4, Text: "l"}, "opened 4") // by the mirror that there is
	c.session.mu.Lock()
	defer c.session.mu.Unlock()
	if got := len(c.session.subscribed); got != 1 {
		t.Errorf("%d mirrors are open", got)
	}
}

func TestErrorsOfOtherProcesses(t *testing.T) {
	for code, is := range wireErrors {
		err := Refusal(&transport.Frame{Code: uint8(code), Text: "why"})
		if err.Error() != "why" || is != nil && (!errors.Is(err, is) || CodeOf(fmt.Errorf("x: %w", is)) != uint8(code)) {
			t.Errorf("code %d is %v", code, err)
		}
	}
	if err := Refusal(&transport.Frame{Code: uint8(len(wireErrors)), Text: "later"}); errors.Unwrap(err) != nil {
		t.Errorf("an error that is not known is %v", errors.Unwrap(err))
	}
	if CodeOf(ErrLeaseLost) != 0 || slices.Contains(wireErrors[1:], nil) {
		t.Error("an error on which nobody decides has a code")
	}
}
