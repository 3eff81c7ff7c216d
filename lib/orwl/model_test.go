package orwl

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"fairway/lib/modelcheck"
	"fairway/lib/seed"
)

// checkLease has SPIN walk the model of a lease, and returns what it says. The model says itself who may stand still.
func checkLease(t *testing.T, trace string, defines ...string) (said string, refused bool) {
	t.Helper()
	return modelcheck.Check(t, "model/lease.pml", trace, true, defines...)
}

// Whatever of the messages between hosts is lost, late or sent again, nothing counts that was written under a grant
// that is over, nobody reads outdated data, and all who wait have their turns; and the model that says so refuses
// what is broken.
func TestModelOfTheLease(t *testing.T) {
	size := []string{"-DROUNDS=2"}
	if os.Getenv("FAIRWAY_SOAK") != "" {
		size = []string{"-DROUNDS=3"}
	}
	if said, refused := checkLease(t, "", size...); refused {
		t.Errorf("the model is wrong:\n%s", said)
	}
	for i, name := range []string{
		"no fence", "no generation", "takes after the end", "keeps the replica", "holds on", "stays queued",
		"grants at the end", "writes at once",
	} {
		if _, refused := checkLease(t, "", fmt.Sprint("-DBROKEN=", i+1)); !refused {
			t.Errorf("%s is not refused", name)
		}
	}
}

// What real processes see whose connections are cut is a way through the model, and what they could not see is none.
func TestModelFollowsTheLease(t *testing.T) {
	random := rand.New(rand.NewPCG(seed.Of(t), 0))
	seen := recordedLease(t, random)
	if _, found := checkLease(t, tracedLease(seen), "-DTRACE"); !found {
		t.Errorf("the model does not do this: %v", seen)
	}
	for i, s := range seen {
		if s.what == seenAcquired {
			wrong := append([]leaseStep(nil), seen...)
			wrong[i].version++ // which nobody had written
			if _, found := checkLease(t, tracedLease(wrong), "-DTRACE"); found {
				t.Errorf("the model does this too: %v", wrong)
			}
			break
		}
	}
}

// leaseStep is what a process saw.
type leaseStep struct{ what, process, version int }

// What is seen, by the numbers of lease.pml.
const (
	seenAcquired = iota
	seenReleased
	seenLost
)

func tracedLease(seen []leaseStep) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "#define STEPS %d\ninline load() {\n", len(seen))
	for i, s := range seen {
		fmt.Fprintf(&b, "\tseen[%d] = %d; by[%d] = %d; saw[%d] = %d;\n", i, s.what, i, s.process, i, s.version)
	}
	b.WriteString("\tskip\n}\n")
	return b.String()
}

// severable stands between a process and the server, and cuts their connection.
type severable struct {
	net.Listener
	mu       sync.Mutex
	ours     net.Conn // to the process
	onwards  net.Conn
	finished sync.WaitGroup
}

func (s *severable) run(to string) {
	for {
		ours, err := s.Accept()
		if err != nil {
			return
		}
		onwards, err := net.Dial("tcp", to)
		if err != nil {
			ours.Close()
			continue
		}
		s.mu.Lock()
		s.ours, s.onwards = ours, onwards
		s.mu.Unlock()
		s.finished.Go(func() { io.Copy(onwards, ours) })
		s.finished.Go(func() { io.Copy(ours, onwards) })
	}
}

// close ends all of it.
func (s *severable) close() {
	s.Close()
	s.cut(true)
	s.finished.Wait()
}

// cut ends the connection for the process, and for the server too unless that is to wait for the lease.
func (s *severable) cut(forBoth bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ours.Close()
	if forBoth {
		s.onwards.Close()
	}
}

// recordedLease is what two processes see that write twice each, and whose connections are cut once at some moment.
func recordedLease(t *testing.T, random *rand.Rand) (seen []leaseStep) {
	t.Helper()
	l := newLocation(t, "l", 8)
	s := &Server{Lease: 2 * time.Second}
	s.Add(l)
	direct := listen(t, "tcp")
	go s.Serve(direct)
	defer s.Close()
	var mu sync.Mutex
	var between [2]*severable
	cuts := [2]int{random.IntN(4), random.IntN(4)} // after so many steps of the process
	forBoth := [2]bool{random.IntN(2) == 0, random.IntN(2) == 0}
	var steps [2]int
	see := func(what, process, version int) {
		mu.Lock()
		seen = append(seen, leaseStep{what, process, version})
		steps[process]++
		cut := steps[process] == cuts[process]
		mu.Unlock()
		if cut {
			between[process].cut(forBoth[process])
		}
	}
	var all sync.WaitGroup
	for process := range between {
		between[process] = &severable{Listener: listen(t, "tcp")}
		go between[process].run(direct.Addr().String())
		p, err := (&Dialer{Lease: 10 * time.Second}).Dial(background, "tcp", between[process].Addr().String())
		must(t, err)
		defer between[process].close()
		defer p.Close()
		m, err := p.Mirror(background, "l")
		must(t, err)
		all.Go(func() {
			for range 2 {
				if writeSeen(process, m, see) != nil {
					see(seenLost, process, 0)
					if err := p.Connected(background); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	return seen
}

// writeSeen has a process write the next version of the location.
func writeSeen(process int, m *Mirror, see func(what, process, version int)) error {
	var h Handle
	if err := h.WriteRequest(m); err != nil {
		return err
	}
	if err := h.Acquire(background); err != nil {
		return err
	}
	b, err := h.WriteMap()
	if err != nil {
		return err
	}
	see(seenAcquired, process, int(b[0]))
	b[0]++
	see(seenReleased, process, 0)
	return h.Release()
}
