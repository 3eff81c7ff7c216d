package orwl

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"fairway/lib/orwl/internal/checkpoint"
)

// Checkpoints save what the tasks of a gang have in their locations between two iterations, while
// the tasks go on, and give it to the gang when it begins again.
//
// In the queue of a location the requests of recurring tasks stand in the same order in each
// iteration (Pairs.Release). The task whose request is the first of them posts a read in front of its
// next request, in the iteration that all processes have agreed on. That read sees what all requests
// of this iteration have made of the location, and nothing of the next: so all reads together see
// what a sequential program has after it, whatever the timing. A writer waits only while its own
// location is copied in memory; what was copied goes to storage beside the computation.
//
// The parts of all tasks count together, or none does: task 0 names a checkpoint as the last whole
// one when all parts are durable in its folder. It is replaced by the next, so two at most are kept.
// A checkpoint that comes while the one before is still being stored is left out, and then nobody
// waits either.
//
// All that a program needs to go on must be in the locations, apart from the number of the iteration.
//
//	c, err := m.Checkpoints(ctx, 10*time.Second, own...)   // before Serve; gives back what was saved
//	...
//	for i := c.Begun(); i < iterations; i++ {
//		...
//		err = c.Release(ctx, i+1, pairs)
//	}
type Checkpoints struct {
	member *Member
	every  time.Duration
	begun  int
	ctx    context.Context // ends with close
	cancel context.CancelFunc
	tasks  sync.WaitGroup
	exch   *exchange // with task 0; nil for task 0 itself
	vault  *vault    // of task 0

	// look is the first iteration at whose end a task has more to do than to release.
	look atomic.Int64

	mu      sync.Mutex
	learned chan struct{} // closed when the plan goes further
	reached chan struct{} // has one element when a task has come to a point of the plan
	at      time.Time     // when
	plan    plan
	shots   []*shot // those that still lack requests, by iteration
	busy    bool    // copies are being made or stored
	covered []*covered
	err     error // the last of what was not saved
	saved   int   // the iteration of the last part that was stored
	stored  int   // how many were
}

// covered is a location whose versions are saved.
type covered struct {
	location *Location
	copy     []byte // of its version in the checkpoint that is being made; kept for the next
}

func (v *covered) LocationName() string { return v.location.name }
func (v *covered) Copied() []byte       { return v.copy }

func (v *covered) Restore(size int, read func([]byte)) error {
	if err := v.location.memory.Resize(size); err != nil {
		return v.location.refuse(err)
	}
	v.location.Initialize(read)
	return nil
}

// shot is a checkpoint on its way, of this process.
type shot struct {
	iteration int
	missing   map[*Location]*covered // which nobody has posted a read for
	copying   int                    // locations that are not copied yet
}

// ErrNoStart refuses checkpoints of a location that was made without StartWith, or whose first
// request comes from another process: only the process that has both can save it.
var ErrNoStart = errors.New("a checkpoint needs a location with StartWith whose first request is of the same process")

// Checkpoints begins checkpoints of the locations of this process, which nobody may have requested
// or served yet: all processes of a gang call it before Serve, with the same interval between two
// checkpoints and in each attempt with locations of the same names. If there is a whole checkpoint
// the locations have its versions afterwards. The folder is that of the step's
// `checkpoint: state/` at task 0. Memory is needed for one copy of the locations.
func (m *Member) Checkpoints(ctx context.Context, every time.Duration, locations ...*Location) (*Checkpoints, error) {
	switch {
	case m.gang == nil:
		return nil, ErrNoGang
	case m.gang.Folder == "" && m.Process() == 0:
		return nil, fmt.Errorf("there is no folder for checkpoints: give the step a key such as `checkpoint: state/`")
	case every <= 0:
		return nil, fmt.Errorf("an interval of %v between checkpoints: give more than zero", every)
	case m.saving != nil || m.served != nil:
		return nil, errors.New("checkpoints begin once, before the locations are served")
	}
	c := &Checkpoints{member: m, every: every, learned: make(chan struct{}), reached: make(chan struct{}, 1)}
	for _, l := range locations {
		if l.latch == nil {
			return nil, l.refuse(ErrNoStart)
		}
		c.covered = append(c.covered, &covered{location: l})
	}
	slices.SortFunc(c.covered, func(a, b *covered) int { return cmp.Compare(a.location.name, b.location.name) })
	for i, l := range c.covered[min(1, len(c.covered)):] {
		if l.location.name == c.covered[i].location.name {
			return nil, fmt.Errorf("two locations have the name %s, by which they are known in a checkpoint", l.location.name)
		}
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	m.saving = c
	if err := c.begin(ctx); err != nil {
		m.saving = nil
		c.close()
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	return c, nil
}

// begin joins the others, and takes what was saved.
func (c *Checkpoints) begin(ctx context.Context) (err error) {
	var from *checkpoint.Whole
	var plan Resource
	if c.member.Process() == 0 {
		from, plan, err = c.openVault()
	} else {
		from, plan, err = c.openExchange(ctx)
	}
	if err != nil {
		return err
	}
	if from != nil {
		if err := c.restore(ctx, from); err != nil {
			return fmt.Errorf("going on after iteration %d, from %s: %w", from.Iteration, c.where(), err)
		}
		c.begun = from.Iteration
	}
	c.plan = newPlan(c.begun)
	c.lookAgainLocked()
	if c.member.Process() == 0 {
		return c.lead(plan)
	}
	return c.follow(plan)
}

// where says where the checkpoints are.
func (c *Checkpoints) where() string {
	if c.member.Process() == 0 {
		return c.member.gang.Folder
	}
	return "the folder of task 0"
}

// Begun returns how many iterations are done already: those of the checkpoint from which the gang
// goes on, and 0 at its first beginning.
func (c *Checkpoints) Begun() int {
	if c == nil {
		return 0
	}
	return c.begun
}

// Saved returns the iteration of the last checkpoint of which this process has stored its part in
// this attempt, or 0; of how many it has; and why a later one was not stored, if one was not. That does
// not end the program: it goes on without.
func (c *Checkpoints) Saved() (last, count int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.saved, c.stored, c.err
}

// Release ends an iteration of a task, the n-th one since the very beginning: it does what
// ps.Release does, and before, where a checkpoint is due at its end, posts the reads for it. All
// tasks call it in all iterations but the last one, for the pairs that they use in an iteration once.
// It waits only if the plan, which goes two points ahead, is not known so far. On a nil
// Checkpoints it is ps.Release.
func (c *Checkpoints) Release(ctx context.Context, n int, ps Pairs) error {
	if c != nil && int64(n) >= c.look.Load() {
		if err := c.pass(ctx, n, ps); err != nil {
			return errors.Join(err, ps.Cancel())
		}
	}
	return ps.Release()
}

// pass is what a task does at the end of an iteration beside its release.
func (c *Checkpoints) pass(ctx context.Context, n int, ps Pairs) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n > c.plan.horizon() {
		if c.ctx.Err() != nil { // nobody tells of more, or wakes who waits
			return fmt.Errorf("the plan of checkpoints ends with iteration %d: %w", c.plan.horizon(), ErrLeaseLost)
		}
		learned := c.learned
		c.mu.Unlock()
		err := park(ctx, learned)
		c.mu.Lock()
		if err != nil {
			return fmt.Errorf("waiting for the plan of checkpoints: %w", err)
		}
	}
	if c.plan.passes(n) {
		c.at = time.Now()
		select {
		case c.reached <- struct{}{}:
		default:
		}
	}
	i := slices.IndexFunc(c.shots, func(s *shot) bool { return s.iteration == n })
	if i < 0 && c.plan.isSaved(n) && n > c.plan.shot {
		i = len(c.shots)
		c.shots = append(c.shots, c.newShotLocked(n))
	}
	if i >= 0 {
		if err := c.postLocked(c.shots[i], ps); err != nil {
			return err
		}
		if len(c.shots[i].missing) == 0 {
			c.shots = slices.Delete(c.shots, i, i+1)
		}
	}
	c.lookAgainLocked()
	return nil
}

// newShotLocked begins the checkpoint at the end of an iteration, or leaves it out where the one
// before is not stored yet: then it has no locations.
func (c *Checkpoints) newShotLocked(n int) *shot {
	s := &shot{iteration: n, missing: make(map[*Location]*covered)}
	c.plan.shot = n
	if c.busy {
		return s
	}
	for _, v := range c.covered {
		s.missing[v.location] = v
	}
	s.copying, c.busy = len(s.missing), true
	if s.copying == 0 {
		c.tasks.Go(func() { c.store(s) })
	}
	return s
}

// postLocked posts the reads at those locations where a pair's request is the first of an iteration.
func (c *Checkpoints) postLocked(s *shot, ps Pairs) error {
	for _, p := range ps {
		l, ok := p.now().res.(*Location)
		if !ok || s.missing[l] == nil {
			continue
		}
		if l.first != nil && l.first.served != nil {
			return l.refuse(ErrNoStart)
		}
		if l.first != &p.handles[0] && l.first != &p.handles[1] {
			continue
		}
		h := &Handle{Name: fmt.Sprintf("checkpoint %d", s.iteration)}
		if err := h.ReadRequest(l); err != nil {
			return err
		}
		v := s.missing[l]
		delete(s.missing, l)
		c.tasks.Go(func() { c.take(s, v, h) })
	}
	return nil
}

// take copies a location, and stores all of them after the last one.
func (c *Checkpoints) take(s *shot, v *covered, h *Handle) {
	if h.Acquire(c.ctx) != nil {
		return // the program ends
	}
	data, err := h.ReadMap()
	if err == nil {
		v.copy = append(v.copy[:0], data...)
	}
	err = errors.Join(err, h.Release())
	c.mu.Lock()
	s.copying--
	last := s.copying == 0
	if err != nil {
		c.err = err
	}
	c.mu.Unlock()
	if last {
		c.store(s)
	}
}

// store makes the part of this process durable, which has been copied.
func (c *Checkpoints) store(s *shot) {
	var err error
	if c.vault != nil {
		err = c.vault.storeOwn(c, s.iteration)
	} else {
		err = c.exch.store(c, s.iteration)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.busy = false
	if err == nil {
		c.saved = s.iteration
		c.stored++
	} else if c.ctx.Err() == nil {
		c.err = fmt.Errorf("checkpoint after iteration %d: %w", s.iteration, err)
	}
}

// lookAgainLocked says from which iteration on tasks have something to do: the first for which reads
// are missing, the next point of the plan, or the first one beyond it.
func (c *Checkpoints) lookAgainLocked() {
	look := c.plan.next()
	for _, s := range c.shots {
		look = min(look, s.iteration)
	}
	c.look.Store(int64(look))
}

// learn takes a point of the plan.
func (c *Checkpoints) learn(p point) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.plan.add(p)
	c.lookAgainLocked()
	close(c.learned)
	c.learned = make(chan struct{})
}

// finish ends the checkpoints in order: task 0 waits until the others have ended theirs.
func (c *Checkpoints) finish(ctx context.Context) error {
	if c == nil {
		return nil
	}
	c.stop()
	if c.vault != nil {
		return c.vault.server.Shutdown(ctx)
	}
	return c.exch.peer.Close()
}

// close ends the checkpoints at once.
func (c *Checkpoints) close() {
	if c == nil {
		return
	}
	c.stop()
	if c.vault != nil {
		c.vault.server.Close()
		<-c.vault.served
	}
	if c.exch != nil {
		_ = c.exch.peer.Close()
	}
}

// stop ends what goes on here beside the tasks of the program.
func (c *Checkpoints) stop() {
	c.end()
	c.tasks.Wait()
}

// end has nobody go on with checkpoints, or wait for them.
func (c *Checkpoints) end() {
	c.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	close(c.learned)
	c.learned = make(chan struct{})
}

// point is an iteration at whose end tasks look whether the plan goes further; there may be a
// checkpoint.
type point struct {
	iteration int
	save      bool
}

// plan is which iterations end with a checkpoint. All processes know it two points ahead of the
// farthest of them, so that none has to wait. What its last point is, task 0 decides when it has come
// to the one before the last, by the time that the iterations have taken.
type plan struct {
	points []point // that are not passed, and the last one that is
	passed int     // how many of them a task has come to
	last   int     // the iteration of the last checkpoint that is planned, or of the beginning
	shot   int     // the iteration of the last checkpoint that was begun
}

// newPlan begins at the end of an iteration, with two points that save nothing.
func newPlan(begun int) plan {
	return plan{points: []point{{begun + 1, false}, {begun + 2, false}}, last: begun}
}

// horizon is the iteration up to which is known which have checkpoints.
func (p *plan) horizon() int { return p.points[len(p.points)-1].iteration }

// passes notes that a task is at the end of an iteration, and reports whether that is a point to
// which none had come.
func (p *plan) passes(n int) bool {
	before := p.passed
	for p.passed < len(p.points) && p.points[p.passed].iteration <= n {
		p.passed++
	}
	return p.passed > before
}

// next is the first point to which no task has come, or what follows the last one.
func (p *plan) next() int {
	if p.passed < len(p.points) {
		return p.points[p.passed].iteration
	}
	return p.horizon() + 1
}

// isSaved reports whether there is a checkpoint at the end of an iteration.
func (p *plan) isSaved(n int) bool {
	return slices.Contains(p.points, point{n, true})
}

// pointsKept is how many points are kept that tasks have passed.
const pointsKept = 4

func (p *plan) add(q point) {
	p.points = append(p.points, q)
	if q.save {
		p.last = q.iteration
	}
	if drop := p.passed - pointsKept; drop > 0 {
		p.points = slices.Delete(p.points, 0, drop)
		p.passed -= drop
	}
}

// further is the next point when an iteration takes a time, and the last checkpoint was begun age
// before the last point that was passed. A point is a quarter of an interval after the one before, so
// that a plan holds where iterations become slower, but at most twice as far as that one was from the
// one before, since the time is a guess at first. The one where an interval is over has a checkpoint.
func (p *plan) further(iteration, every, age time.Duration) point {
	n := len(p.points)
	step := 2 * (p.points[n-1].iteration - p.points[n-2].iteration)
	from := p.points[max(0, p.passed-1)].iteration
	if p.last > from { // it is planned, and not begun yet
		from, age = p.last, 0
	}
	if iteration > 0 {
		fit := func(t time.Duration) int { return int(min(float64(t)/float64(iteration), math.MaxInt32)) }
		step = min(step, fit(every/4), from+fit(every-age)-p.horizon())
	}
	q := point{iteration: p.horizon() + max(1, step)}
	q.save = float64(age)+float64(q.iteration-from)*float64(iteration) >= nearlyEvery*float64(every)
	return q
}

// nearlyEvery is the share of the interval after which a point of the plan has a checkpoint.
const nearlyEvery = 0.9

// pointsAhead is how many points the plan has beyond those to which task 0 has come.
const pointsAhead = 2

// lead makes the plan, as task 0, and tells it to the others by a location that it writes first.
func (c *Checkpoints) lead(r Resource) error {
	w := new(Pair)
	w.SetName("plan of checkpoints")
	if err := Insert(c.ctx, w.Writing(r).At(0)); err != nil {
		return err
	}
	c.tasks.Go(func() {
		defer w.Cancel()
		began, before := time.Now(), c.begun
		saved, savedAt := c.begun, began
		var iteration time.Duration
		for {
			select {
			case <-c.reached:
			case <-c.ctx.Done():
				return
			}
			c.mu.Lock()
			if p := c.plan.points[c.plan.passed-1]; p.iteration > before {
				iteration = c.at.Sub(began) / time.Duration(p.iteration-before)
				began, before = c.at, p.iteration
			}
			if c.plan.last > saved && c.plan.last <= before {
				saved, savedAt = c.plan.last, c.at
			}
			age := c.at.Sub(savedAt)
			c.mu.Unlock()
			if c.extend(w, iteration, age) != nil {
				return
			}
		}
	})
	return nil
}

// extend adds points to the plan until it is far enough ahead.
func (c *Checkpoints) extend(w *Pair, iteration, age time.Duration) error {
	for {
		c.mu.Lock()
		enough := len(c.plan.points)-c.plan.passed >= pointsAhead
		q := c.plan.further(iteration, c.every, age)
		c.mu.Unlock()
		if enough {
			return nil
		}
		err := Do(c.ctx, w, func(b []byte) error {
			putPoint(b, q)
			return nil
		})
		if err != nil {
			return err
		}
		c.learn(q)
	}
}

// follow takes the plan from task 0.
func (c *Checkpoints) follow(r Resource) error {
	p := new(Pair)
	p.SetName("plan of checkpoints")
	if err := Insert(c.ctx, p.Reading(r).At(c.member.Process())); err != nil {
		return err
	}
	c.tasks.Go(func() {
		defer p.Cancel()
		defer c.end() // no task waits for more of the plan
		for {
			var q point
			var err error
			if e := DoReading(c.ctx, p, func(b []byte) error { q, err = pointOf(b); return nil }); e != nil || err != nil {
				return
			}
			c.mu.Lock()
			further := q.iteration > c.plan.horizon()
			c.mu.Unlock()
			if !further {
				return
			}
			c.learn(q)
		}
	})
	return nil
}

// pointSize is the size of the location of the plan: an iteration, and whether it is saved.
const pointSize = 16

func putPoint(b []byte, p point) {
	binary.LittleEndian.PutUint64(b, uint64(p.iteration))
	b[8] = 0
	if p.save {
		b[8] = 1
	}
}

func pointOf(b []byte) (point, error) {
	if len(b) != pointSize {
		return point{}, fmt.Errorf("a point of the plan has %d bytes", len(b))
	}
	return point{int(binary.LittleEndian.Uint64(b)), b[8] == 1}, nil
}

// restore gives the locations the versions of a part.
func (c *Checkpoints) restore(ctx context.Context, from *checkpoint.Whole) error {
	f, err := from.Open()
	if err != nil {
		return err
	}
	defer f.Close()
	return checkpoint.ReadPart(ctx, f, from.Sum, c.covered)
}
