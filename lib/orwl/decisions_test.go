package orwl

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"fairway/lib/orwl/internal/checkpoint"
	"fairway/lib/orwl/internal/distribution"
	"fairway/lib/orwl/internal/transport"
	"fairway/lib/sched"
)

// What is decided in small steps is tried here step by step: from outside some of it is seen by chance only, and
// some where another process lies.

func wantError(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// asked is an exchange with the vault of a gang of two tasks, in one process.
func asked(t *testing.T, ctx context.Context) (*exchange, *checkpoint.Vault, string) {
	t.Helper()
	folder := t.TempDir()
	files, _, err := checkpoint.OpenVault(folder, 2)
	must(t, err)
	v := &vault{files: files}
	l := newLocation(t, talkName(1), 0)
	x, answers := new(exchange), new(Pair)
	must(t, Insert(ctx, x.pair.Writing(l).At(0)))
	must(t, Insert(ctx, answers.Writing(l).At(1)))
	must(t, x.pair.Acquire(ctx))
	done := make(chan struct{})
	go func() { defer close(done); v.attend(ctx, 1, answers) }()
	t.Cleanup(func() { _ = x.pair.Cancel(); <-done })
	return x, files, folder
}

func TestVaultRefuses(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	x, v, folder := asked(t, ctx)
	ask := func(q checkpoint.Message) (checkpoint.Message, error) { return x.ask(ctx, q) }
	_, err := ask(checkpoint.Message{Kind: 99})
	wantError(t, err, "task 0: there is no question 99")
	_, err = ask(checkpoint.Message{Kind: checkpoint.GavePart, Iteration: 3})
	wantError(t, err, "nothing was sent of iteration 3")
	_, err = ask(checkpoint.Message{Kind: checkpoint.GivePiece, Iteration: 3, Offset: 5, Data: []byte("late")})
	wantError(t, err, "a piece at 5 of iteration 3 comes where none was expected")
	w := &pieceWriter{ctx: ctx, exchange: x, iteration: 1 << 63}
	_, err = w.Write(make([]byte, checkpoint.PieceSize))
	wantError(t, err, "a part of iteration")
	_, err = ask(checkpoint.Message{Kind: checkpoint.GivePiece, Iteration: 3, Data: []byte("part")})
	must(t, err)
	wrong := checkpoint.Message{Kind: checkpoint.GavePart, Iteration: 3}
	wrong.SetPart(checkpoint.Sum{Size: 4, CRC32C: 1})
	_, err = ask(wrong)
	wantError(t, err, checkpoint.ErrDamaged.Error())
	must(t, v.Arrived(3, 0, checkpoint.Sum{Size: 4}))
	if whole, err := checkpoint.ReadManifest(folder, 2); err != nil || whole.Iteration != 0 {
		t.Errorf("what is damaged has arrived: %v, %v", whole, err)
	}
}

func TestVaultKeepsTheLastWholeCheckpoint(t *testing.T) {
	ctx, cancel := context.WithCancel(background)
	defer cancel()
	x, v, folder := asked(t, ctx)
	part := bytes.Repeat([]byte("part"), checkpoint.PieceSize/2)
	var sum checkpoint.Sum
	sum.Add(part)
	for _, iteration := range []int{3, 7} {
		a, err := x.ask(ctx, checkpoint.Message{Kind: checkpoint.AskState})
		if err != nil || int(a.Iteration) != max(0, iteration-4) {
			t.Errorf("it goes on from %d, %v", a.Iteration, err)
		}
		w := &pieceWriter{ctx: ctx, exchange: x, iteration: uint64(iteration)}
		if n, err := w.Write(part); n != len(part) || err != nil {
			t.Fatal(n, err)
		}
		must(t, w.flush())
		q := checkpoint.Message{Kind: checkpoint.GavePart, Iteration: uint64(iteration)}
		q.SetPart(sum)
		_, err = x.ask(ctx, q)
		must(t, err)
		must(t, os.WriteFile(checkpoint.PartPath(folder, iteration, 0), part, 0o600))
		must(t, v.Arrived(iteration, 0, sum))
	}
	r := &pieceReader{ctx: ctx, exchange: x}
	if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, part) {
		t.Errorf("%d bytes come back, %v", len(got), err)
	}
	if n, err := r.Read(make([]byte, 8)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("behind the end there are %d bytes, %v", n, err)
	}
	if _, err := os.Stat(checkpoint.PartFolder(folder, 3)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the one before is still there: %v", err)
	}
	for _, iteration := range []int{3, 7} {
		wantError(t, v.Arrived(iteration, 0, sum), "is before that of the last whole checkpoint, 7")
	}
	again, err := checkpoint.ReadManifest(folder, 2)
	if err != nil || again.Iteration != 7 || again.Parts[1] != sum {
		t.Errorf("%+v, %v", again, err)
	}
	_, err = checkpoint.ReadManifest(folder, 3)
	wantError(t, err, "the last checkpoint is of 2 tasks, and these are 3")
	cancel()
	if n, err := (&pieceReader{ctx: ctx, exchange: x}).Read(make([]byte, 8)); n != 0 || err == nil {
		t.Errorf("without an answer there are %d bytes, %v", n, err)
	}
}

// The plan of checkpoints comes as it was told, whatever stood there before.
func TestPointsOfThePlan(t *testing.T) {
	b := bytes.Repeat([]byte{0xff}, pointSize)
	for _, want := range []point{{7, true}, {math.MaxInt, false}, {9, true}} {
		if putPoint(b, want); b[8] > 1 {
			t.Errorf("%x", b)
		}
		if got, err := pointOf(b); err != nil || got != want {
			t.Errorf("got %v, %v, want %v", got, err, want)
		}
	}
	for _, size := range []int{0, pointSize - 1, pointSize + 1} {
		_, err := pointOf(make([]byte, size))
		wantError(t, err, fmt.Sprintf("a point of the plan has %d bytes", size))
	}
}

// A point comes a quarter of an interval after the one before, and at most twice as far as that one.
func TestNextPointOfThePlan(t *testing.T) {
	for _, c := range []struct {
		name                  string
		points                []point
		passed, last          int
		iteration, every, age time.Duration
		want                  point
	}{
		{"the time is not known", []point{{11, false}, {12, false}}, 0, 10, 0, 40, 0, point{14, false}},
		{"twice as far", []point{{11, false}, {14, false}}, 1, 10, 1, 400, 0, point{20, false}},
		{"a quarter", []point{{11, false}, {31, false}}, 1, 10, 1, 40, 0, point{41, false}},
		{"the interval is over", []point{{11, false}, {41, false}}, 1, 10, 1, 40, 0, point{51, true}},
		{"what is planned counts", []point{{11, false}, {41, true}}, 1, 41, 1, 40, 30, point{51, false}},
		{"never none", []point{{11, false}, {12, false}}, 1, 10, 100, 40, 0, point{13, true}},
	} {
		p := plan{points: c.points, passed: c.passed, last: c.last}
		if got := p.further(c.iteration, c.every, c.age); got != c.want {
			t.Errorf("%s: %v, not %v", c.name, got, c.want)
		}
	}
}

// Without checkpoints an iteration ends as always.
func TestNoCheckpoints(t *testing.T) {
	l := newLocation(t, "l", 8)
	p := new(Pair)
	must(t, Insert(background, p.Writing(l).At(0)))
	must(t, p.Acquire(background))
	must(t, (*Checkpoints)(nil).Release(background, 1, Pairs{p}))
	must(t, p.Acquire(background))
	must(t, p.Finish())
	if err := (*Checkpoints)(nil).finish(background); err != nil {
		t.Error(err)
	}
}

func TestGangOfOnePort(t *testing.T) {
	g := &gang{Tasks: 2, Task: 1, Members: []gangMember{{0, "a", []int{1, 2}}, {1, "b", []int{3}}}}
	if all := g.addresses(1); all != nil {
		t.Errorf("at the second port there are %v", all)
	}
	if all := g.addresses(0); len(all) != 2 || all[1] != "b:3" {
		t.Errorf("at the first port there are %v", all)
	}
	c := &Checkpoints{member: &Member{gang: g}}
	_, _, err := c.openExchange(background)
	wantError(t, err, "the tasks have one port each")
}

func TestGateThatIsOpenTakesNobody(t *testing.T) {
	l := newLocation(t, "l", 8)
	g := NewGate(1)
	first, second := new(Handle), new(Handle)
	must(t, g.Insert(background, "a", first.Writing(l)))
	wantError(t, g.Insert(background, "b", second.Writing(l)), "task b comes to a gate that is open")
	must(t, first.Cancel())
}

func TestKeysThatAreNotThere(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "keys")
	wantError(t, WriteKeys(folder, []string{"host-without-port"}), "keys of process 0, at host-without-port")
	folder += "2"
	wantError(t, WriteKeys(folder, []string{":1"}), "it names no host")
	folder += "3"
	must(t, WriteKeys(folder, []string{"127.0.0.1:1"}))
	wantError(t, WriteKeys(folder, []string{"127.0.0.1:1"}), "keys of a group")
	certificate, key, authorities := Keys(folder, 0)
	if _, err := LoadTLS(certificate, key, authorities); err != nil {
		t.Error(err)
	}
	_, err := LoadTLS(key, key, authorities)
	wantError(t, err, "certificate of this process")
	_, err = LoadTLS(certificate, key, filepath.Join(folder, "none"))
	wantError(t, err, "certificates of the group")
	_, err = LoadTLS(certificate, key, key)
	wantError(t, err, "has none")
}

func TestPeersByProcess(t *testing.T) {
	p := new(Peer)
	m := &Member{peers: []*Peer{nil, p}}
	if m.Peer(1) != p || m.Peer(0) != nil {
		t.Error("it is another one")
	}
}

// A channel that is closed wakes who waits, whether as a task or not; the end of a context is an error.
func TestParkedUntilItIsClosed(t *testing.T) {
	closed := make(chan struct{})
	close(closed)
	over, cancel := context.WithCancel(background)
	cancel()
	s := sched.New(sched.Config{})
	defer s.Close()
	must(t, park(background, closed))
	if err := park(over, make(chan struct{})); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	must(t, s.Run(background, func(task *sched.Task) error {
		if err := park(task.Context(), closed); err != nil {
			t.Error(err)
		}
		ctx, cancel := context.WithCancel(task.Context())
		cancel()
		if err := park(ctx, make(chan struct{})); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		return nil
	}))
}

// What no honest owner says ends the connection.
func TestAnswersThatCannotBe(t *testing.T) {
	m := &Mirror{replica: distribution.NewReplica(nil)}
	p := &Peer{mirrors: map[uint64]*Mirror{1: m}, replies: map[uint64]chan error{}, pending: map[uint64]*Handle{}}
	for what, err := range map[string]error{
		"an answer for another mirror": p.opened(&transport.Frame{ID: 7}),
		"a twin that is none":          p.opened(&transport.Frame{ID: 1, Next: 9}),
		"a grant of nothing":           p.granted(&transport.Frame{Mirror: 7}),
		"a grant before it is opened":  m.replica.Update(&transport.Frame{}, 1<<20, 0),
	} {
		if !errors.Is(err, transport.ErrMalformed) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestOnlyAConnectionThatLastsIsPinned(t *testing.T) {
	one, other := new(transport.Link), new(transport.Link)
	for _, c := range []struct {
		link *transport.Link
		err  error
		want int
	}{{one, nil, 1}, {other, nil, 0}, {one, ErrLeaseLost, 0}} {
		p := &Peer{link: one, err: c.err, pinned: map[*Handle]struct{}{}}
		h := new(Handle)
		h.remote.replica = distribution.NewReplica(c.link)
		if p.pin(h); len(p.pinned) != c.want {
			t.Errorf("%d are pinned, not %d", len(p.pinned), c.want)
		}
	}
}

// Grants and releases through a mirror leave nothing behind, and large changes arrive whole.
func TestLargeChangesThroughAMirror(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		const size = 3<<20 + 5 // which comes in several steps
		l := newLocation(t, "l", size, options...)
		_, p := served(t, network, l)
		m := mirror(t, p, "l")
		var h Handle
		must(t, h.WriteRequest(m))
		must(t, h.Acquire(background))
		b, err := h.WriteMap()
		must(t, err)
		for i := 0; i+8 <= size; i += 8 {
			binary.LittleEndian.PutUint64(b[i:], uint64(i)*0x9e3779b97f4a7c15)
		}
		want := bytes.Clone(b)
		p.mu.Lock()
		held := m.replica.Held
		p.mu.Unlock()
		must(t, h.Release())
		p.mu.Lock()
		after, pinned := m.replica.Held, len(p.pinned)
		p.mu.Unlock()
		if held != 1 || after != 0 || pinned != 0 {
			t.Errorf("held by %d, afterwards by %d, with %d pinned", held, after, pinned)
		}
		if !bytes.Equal(read(t, l), want) {
			t.Error("the owner has something else")
		}
	})
}

func TestPeriodOfASingleTask(t *testing.T) {
	o := Order{"l": {{Task: "a", Mode: Write}}}
	period, limit, err := o.Period(map[string]time.Duration{"a": time.Second})
	if err != nil || period != time.Second || limit.Iterations != 1 || len(limit.Cycle) == 0 {
		t.Fatal(period, limit, err)
	}
	g := &eventGraph{tasks: []string{"a"}, times: []time.Duration{3}}
	own := g.limit([]eventEdge{{tokens: 1}})
	if own.Cycle[0].Location != "its own last iteration" || own.Iterations != 1 || own.Time != 3 {
		t.Errorf("%+v", own)
	}
	if step := g.limit([]eventEdge{{}}); step.Cycle[0].Location != "" {
		t.Errorf("%+v", step)
	}
	if named := g.limit([]eventEdge{{location: "l", tokens: 1}}); named.Cycle[0].Location != "l" {
		t.Errorf("%+v", named)
	}
	bad := Order{
		"x": {{Task: "a", Mode: Write}, {Task: "b", Mode: Write}}, "y": {{Task: "b", Mode: Write}, {Task: "a", Mode: Write}},
	}
	if period, _, err := bad.Period(nil); period != 0 || err == nil {
		t.Errorf("a deadlock has the period %v, %v", period, err)
	}
}

func TestShapesRefuseWhatDoesNotFit(t *testing.T) {
	one := []*Location{newLocation(t, "one", 8)}
	err := Pipeline(background, 2, one, func(int, int, []*int, []*int) error { return nil })
	wantError(t, err, "pointer")
	three := []*Location{newLocation(t, "a", 8), newLocation(t, "b", 8), newLocation(t, "c", 8)}
	for _, n := range []int{-1, 0, 3} {
		err := Stencil(background, 1, three, func(int) []int { return []int{n} },
			func(int, []int64, [][]int64) error { return nil })
		wantError(t, err, fmt.Sprintf("task 0 of a stencil of 3 locations has a neighbour %d", n))
	}
	wantError(t, Ring(background, 1, three[:1], func(int, []int64, []int64) error { return nil }), "has no neighbours")
}

func TestShareOfWaiting(t *testing.T) {
	for _, c := range []struct {
		waiting, total time.Duration
		want           float64
	}{{0, 0, 0}, {1, 1, 1}, {1, 4, 0.25}} {
		if got := (TaskTimes{Waiting: c.waiting, Total: c.total}).WaitingShare(); got != c.want {
			t.Errorf("%v of %v is %v", c.waiting, c.total, got)
		}
	}
}

func TestOrderNamesLocationsWithoutRequests(t *testing.T) {
	o := OrderOf(newLocation(t, "l", 8), newLocation(t, "l", 8))
	if len(o) != 2 || o["l"] != nil || o["l (2)"] != nil {
		t.Errorf("%v", o)
	}
	if _, ok := o["l"]; !ok {
		t.Error("the first is not there")
	}
	_, limit, err := o.Period(nil)
	if err != nil || limit.Iterations != 1 || limit.Time != 0 {
		t.Errorf("%+v, %v", limit, err)
	}
}

// The points that all tasks have passed are forgotten, but for some.
func TestPassedPointsAreForgotten(t *testing.T) {
	p := newPlan(0)
	for n := 3; n <= 8; n++ {
		p.add(point{iteration: n})
	}
	p.passed = pointsKept + 2
	p.add(point{9, true})
	if p.passed != pointsKept || p.points[0].iteration != 3 || p.horizon() != 9 || p.last != 9 || !p.isSaved(9) {
		t.Errorf("%+v", p)
	}
	p.passed = pointsKept
	if p.add(point{iteration: 10}); p.points[0].iteration != 3 || p.last != 9 {
		t.Errorf("%+v", p)
	}
}

// Only who has a certificate of the gang's authority is one of its tasks.
func TestStrangersAreNoTasksOfAGang(t *testing.T) {
	own, other := filepath.Join(t.TempDir(), "own"), filepath.Join(t.TempDir(), "other")
	must(t, WriteKeys(own, []string{"127.0.0.1:1"}))
	must(t, WriteKeys(other, []string{"127.0.0.1:1"}))
	g := new(gang)
	g.Cert, g.Key, g.CA = Keys(own, 0)
	c, err := g.tls()
	must(t, err)
	shown := func(folder string) tls.ConnectionState {
		certificate, key, authorities := Keys(folder, 0)
		loaded, err := LoadTLS(certificate, key, authorities)
		must(t, err)
		leaf, err := x509.ParseCertificate(loaded.Certificates[0].Certificate[0])
		must(t, err)
		return tls.ConnectionState{PeerCertificates: []*x509.Certificate{leaf}}
	}
	must(t, c.VerifyConnection(shown(own)))
	if err := c.VerifyConnection(shown(other)); err == nil {
		t.Error("a certificate of others is taken")
	}
	wantError(t, c.VerifyConnection(tls.ConnectionState{}), "it has no certificate")
	if none, err := new(gang).tls(); none != nil || err != nil {
		t.Error(none, err)
	}
}

func TestKeysThatCannotBeWritten(t *testing.T) {
	folder := t.TempDir()
	_, key, _ := Keys(folder, 0)
	must(t, os.Mkdir(key, 0o700))
	public, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	authority := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true, BasicConstraintsValid: true}
	if err := writeKey(folder, 0, "127.0.0.1:1", authority, private); err == nil {
		t.Error("a key stands in a folder")
	}
	if err := sign(folder, authority, authority, public, private); err == nil {
		t.Error("a certificate stands in a folder")
	}
}

// fakeListener accepts nobody, for reasons of its own.
type fakeListener struct {
	address net.Addr
	why     []error
	closed  bool
}

func (l *fakeListener) Accept() (net.Conn, error) {
	err := l.why[0]
	l.why = l.why[1:]
	return nil, err
}

func (l *fakeListener) Close() error { l.closed = true; return nil }

func (l *fakeListener) Addr() net.Addr { return l.address }

func TestListenersThatAcceptNobody(t *testing.T) {
	here, far := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1)}
	broken := errors.New("broken")
	s := new(Server)
	err := s.Serve(&fakeListener{address: here, why: []error{broken, net.ErrClosed}})
	wantError(t, err, "accepting connections: broken")
	must(t, s.Serve(&fakeListener{address: here, why: []error{syscall.EMFILE, net.ErrClosed}}))
	open := &fakeListener{address: far}
	if err := s.Serve(open); !errors.Is(err, ErrInsecure) || !open.closed {
		t.Errorf("%v, closed %v", err, open.closed)
	}
	s.Close()
	late := &fakeListener{address: here}
	if err := s.Serve(late); !errors.Is(err, net.ErrClosed) || !late.closed {
		t.Errorf("%v, closed %v", err, late.closed)
	}
}

func TestErrorsOfAllPairsAreTold(t *testing.T) {
	l := newLocation(t, "l", 8)
	first, second := new(Pair), new(Pair)
	must(t, Insert(background, first.Writing(l).At(0)))
	must(t, Insert(background, second.Writing(l).At(1)))
	must(t, Pairs{first}.Acquire(background))
	over, cancel := context.WithCancel(background)
	cancel()
	if err := (Pairs{second}).Acquire(over); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	ran := false
	err := new(shaped).hold(over, Pairs{second}, true, func() error { ran = true; return nil })
	if err == nil || ran {
		t.Errorf("%v, ran %v", err, ran)
	}
	must(t, Pairs{first}.Finish())
	if err := (Pairs{first}).Finish(); err == nil {
		t.Error("a pair ends twice")
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

func TestTraceThatCannotBeWritten(t *testing.T) {
	if _, err := new(Trace).WriteTo(fullDisk{}); !errors.Is(err, syscall.ENOSPC) {
		t.Error(err)
	}
}
