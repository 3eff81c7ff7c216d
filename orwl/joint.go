package orwl

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
)

// Gated holds back all requests on a location until the JointGate of their tasks
// opens. They then stand in the order of their ranks, equal ranks in that of the
// names of their handles.
func Gated() Option {
	return func(l *Location) {
		l.latch = newLatch()
		l.latch.missing = untilGate
	}
}

// NewGateLocation makes the location by which the tasks of a JointGate find
// each other. The process that has it serves it to the others.
func NewGateLocation(name string, tasks int) (*Location, error) {
	return New(name, 0, StartWith(2*tasks))
}

// ErrAbsentTask says that a task was lost before the start, by Wait of a JointGate,
// or by any request on a location made with StartWith. What waits for such a
// start ends with it, and so does what comes later: make another gate or location.
var ErrAbsentTask = errors.New("a task was lost before the start")

// JointGate does what Gate does for tasks in several processes: nothing is
// granted at locations made with Gated until each of the tasks, wherever it is, has
// inserted its requests, and no order is started that can deadlock.
//
// It needs nothing but a location. Each task has two requests there, of which
// none is granted before all have come: under the first, a write, it notes what it
// has inserted elsewhere; under the second, a read, it learns the same of all the
// others. So all come to the same conclusion.
type JointGate struct {
	at    Resource
	tasks int

	mu    sync.Mutex
	own   []*joining
	begun chan struct{} // has a token until somebody does the work of Wait
	open  chan struct{} // closed when it is done
	err   error
}

// joining is a task of this process on its way through the gate.
type joining struct {
	report      taskReport
	postings    []Posting
	write, read Handle
}

// taskReport is what a task tells the others.
type taskReport struct {
	Task     string
	Requests []reportedRequest
}

type reportedRequest struct {
	Location, Owner, Name string
	ID                    uint64 // of the location
	Mode                  Mode
	Rank                  int
	First, Last           int // phases
}

// JoinGate returns the gate for a number of tasks in all processes together. The
// resource is the location made by NewGateLocation or a mirror of it.
func JoinGate(at Resource, tasks int) *JointGate {
	g := &JointGate{at: at, tasks: tasks, begun: make(chan struct{}, 1), open: make(chan struct{})}
	g.begun <- struct{}{}
	return g
}

// Insert inserts the requests of a task of this process. It waits until their owners
// have them, but not for other tasks. When it fails, nothing is inserted; the task
// may come again, unless all the others had come before: they then get ErrAbsentTask.
func (g *JointGate) Insert(ctx context.Context, task string, postings ...Posting) error {
	j := &joining{report: taskReport{Task: task}, postings: postings}
	for _, p := range postings {
		p.nameAfter(task)
		at := p.resource.key()
		j.report.Requests = append(j.report.Requests, reportedRequest{
			Location: p.resource.Name(), Owner: at.owner, ID: at.id, Name: p.handle.Name, Mode: p.mode, Rank: p.Rank,
			First: p.first, Last: p.last,
		})
	}
	// At the gate first, where the others wait: there they learn of it when this
	// process is lost in between.
	j.write.Name, j.read.Name = task, task
	if err := insertAll(ctx, []Posting{j.write.Writing(g.at).At(0), j.read.Reading(g.at).At(1)}); err != nil {
		return fmt.Errorf("coming to the start of all tasks: %w", err)
	}
	if err := Insert(ctx, postings...); err != nil {
		return errors.Join(err, j.write.Cancel(), j.read.Cancel())
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.own = append(g.own, j)
	return nil
}

// Wait waits until the gate is open, after all tasks of this process have
// inserted. A *DeadlockError names the cycle of an order that was refused; all
// requests are then withdrawn, as with every other error.
func (g *JointGate) Wait(ctx context.Context) error {
	select {
	case <-g.open:
	case <-g.begun:
		g.err = g.pass(ctx)
		close(g.open)
	case <-ctx.Done():
		return fmt.Errorf("waiting for the start of all tasks: %w", ctx.Err())
	}
	return g.err
}

// pass goes through the gate with all tasks of this process.
func (g *JointGate) pass(ctx context.Context) error {
	g.mu.Lock()
	own := g.own
	g.mu.Unlock()
	err := g.meet(ctx, own)
	for _, j := range own {
		if err != nil {
			err = errors.Join(err, j.cancel())
			continue
		}
		for _, p := range j.postings {
			p.resource.start()
		}
	}
	return err
}

// meet notes what the own tasks have inserted and judges what all have.
func (g *JointGate) meet(ctx context.Context, own []*joining) error {
	for _, j := range own {
		if err := j.note(ctx); err != nil {
			return fmt.Errorf("waiting for the start of all tasks: %w", err)
		}
	}
	for _, j := range own {
		if err := j.read.Acquire(ctx); err != nil {
			return fmt.Errorf("waiting for the start of all tasks: %w", err)
		}
		data, err := j.read.ReadMap()
		if err == nil {
			err = g.judge(data)
		}
		if err := errors.Join(err, j.read.Release()); err != nil {
			return err
		}
	}
	return nil
}

// note appends the report of the task to those of the others.
func (j *joining) note(ctx context.Context) error {
	if err := j.write.Acquire(ctx); err != nil {
		return err
	}
	line, err := json.Marshal(j.report)
	if err != nil {
		return err
	}
	before, err := j.write.ReadMap()
	if err != nil {
		return err
	}
	at := len(before)
	if err := j.write.Resize(at + len(line)); err != nil {
		return err
	}
	data, err := j.write.WriteMap()
	if err != nil {
		return err
	}
	copy(data[at:], line)
	return j.write.Release()
}

func (j *joining) cancel() error {
	errs := []error{j.write.Cancel(), j.read.Cancel()}
	for _, p := range j.postings {
		errs = append(errs, p.handle.Cancel())
	}
	return errors.Join(errs...)
}

// judge says whether tasks are missing or can deadlock.
func (g *JointGate) judge(data []byte) error {
	var all []reportedRequest
	var by []string
	reports := 0
	for d := json.NewDecoder(bytes.NewReader(data)); ; reports++ {
		var r taskReport
		err := d.Decode(&r)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("reading what the tasks have inserted: %w", err)
		}
		for _, q := range r.Requests {
			all, by = append(all, q), append(by, r.Task)
		}
	}
	if reports != g.tasks {
		return fmt.Errorf("%d of %d are there: %w", reports, g.tasks, ErrAbsentTask)
	}
	return orderOf(all, by).Check()
}

// orderOf returns the order in which requests start.
func orderOf(requests []reportedRequest, tasks []string) Order {
	places := make([]int, len(requests))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int {
		return cmp.Or(cmp.Compare(requests[a].Rank, requests[b].Rank), cmp.Compare(requests[a].Name, requests[b].Name))
	})
	o, names := make(Order), newOrderNames()
	for _, i := range places {
		r := requests[i]
		name := names.name(locationKey{r.Owner, r.ID}, fmt.Sprintf("%s of process %s", r.Location, r.Owner))
		o[name] = append(o[name], Place{Task: tasks[i], Mode: r.Mode, First: r.First, Last: r.Last})
	}
	return o
}

// start opens the latch of a location that is Gated, once.
func (l *Location) start() {
	l.lock()
	var wake wakeList
	if l.latch != nil && l.latch.missing == untilGate {
		slices.SortStableFunc(l.latch.postponed, func(p, q Posting) int {
			return cmp.Or(cmp.Compare(p.Rank, q.Rank), cmp.Compare(p.handle.Name, q.handle.Name))
		})
		l.unlatchLocked(&wake)
	}
	l.mu.Unlock()
	wake.up()
}

func (m *Mirror) start() {
	m.peer.mu.Lock()
	defer m.peer.mu.Unlock()
	if m.peer.err == nil {
		m.peer.link.send(frame{kind: frameStart, mirror: m.id})
	}
}
