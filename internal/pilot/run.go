package pilot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/pilot/process"
	"fairway/internal/pilot/report"
	"fairway/internal/pilot/stage"
	"fairway/internal/pilot/warm"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// ErrLease says that the TaskQueue was away for longer than Config.Lease.
var ErrLease = errors.New("the TaskQueue has not answered for longer than the lease")

// ErrRemoved says that the pilot's folder was removed while the TaskQueue was
// away, as by `fairway clean`: what ran there can neither go on nor be kept.
var ErrRemoved = errors.New("the folder for sandboxes was removed while the TaskQueue did not answer")

// ErrRefused says that the TaskQueue does not want the pilot, and why.
var ErrRefused = errors.New("the TaskQueue refused the pilot")

// ErrEnvironment says that the environment check failed.
var ErrEnvironment = errors.New("environment check failed")

// pilot is the state of Run.
type pilot struct {
	cfg     Config
	log     *slog.Logger
	sched   *sched.Scheduler
	client  wire.TaskQueueClient
	stage   *stage.Area
	hello   *wire.PilotInfo
	has     resources
	caching caching
	spool   *report.Spool
	means

	sendsLogs  bool // the folder of what attempts print is not shared with the server
	toldNoBash atomic.Bool
	simple     simpleTexts

	prefetching chan struct{} // holds one for each file that is fetched ahead

	jobs    context.Context // ends when running attempts are to end
	endJobs context.CancelFunc
	workers sync.WaitGroup
	wake    chan struct{} // the exchange has something to look at

	// mu guards what follows, and the fields of attempts that say so. It is held
	// for short steps only: never while a file is moved or a message is on its way.
	mu sync.Mutex

	duties

	// The conversation with the TaskQueue: what is to be told, and when.
	reports  report.Pending
	exchange exchange

	ending
}

// means is what a pilot has on its node to run attempts.
type means struct {
	scratch   *scratch // nil where the pilot has none of its own
	workspace *workspace
	tree      *process.Tree
	base      *base
	watchdog  *process.Watchdog
	boxes     *process.MemoryBoxes
	watch     *inputWatch
	unkept    unkept
	images    images
	gpus      gpus
	warm      warm.Workers
}

// duties is what a pilot has to do. known has every attempt from its assignment to the report of its
// end; of these, those in queue have not started, in the order of the TaskQueue, and running counts the
// others. concluding counts those of the running whose command has ended and that have yielded their
// processors: 0 <= concluding <= running, and concluding <= slots that the pilot has.
type duties struct {
	known      map[uint64]*attempt
	handed     map[string][]byte // the values of variables that attempts may name, as the TaskQueue told last
	queue      []*attempt
	running    int
	concluding int
	// free is what no running attempt has taken of the pilot's resources. It may be below zero only
	// after an attempt that does not fit was started while no other ran.
	free resources
}

// ending is how a pilot ends. Each stays set: draining takes no more jobs, leaving starts none.
type ending struct {
	draining bool
	leaving  bool
	lifeEnds time.Time // of the pilot; zero: it has no limit
	orphaned time.Time // when the program ended for which the run was opened; zero: it lives, or there is none
	refusal  error     // the TaskQueue does not want the pilot any more
	over     bool      // the run has ended: nothing on the node is needed any more
}

// Run is the life of a pilot: it returns nil when the TaskQueue told it to
// leave, or ctx ended or SIGTERM came and everything was ended in order. The
// error wraps [ErrEnvironment], [ErrLease], [ErrRefused] or [ErrRemoved] where one
// of them is the reason.
func Run(ctx context.Context, cfg Config) error {
	keepDescriptors()
	p, err := newPilot(cfg)
	if err != nil {
		return err
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(HeapGrowth)
	}
	cfg.useProcessors(false)
	// Grid Engine tells of a suspension by it, and it would end the pilot
	signal.Notify(make(chan os.Signal, 1), syscall.SIGUSR1)
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	signals := p.sched.Signals(syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR2) // Grid Engine tells of the end by USR2
	defer signals.Close()
	go func() {
		if _, err := signals.Wait(ctx); err == nil {
			stop()
		}
	}()
	if err := p.prepare(ctx); err != nil {
		p.scratch.release(false, p.log)
		p.announce(ctx, err)
		return fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	defer p.close()
	return p.converse(ctx)
}

// keepDescriptors keeps what the pilot was started with, and has no use for, from its commands.
func keepDescriptors() {
	if unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC) == nil {
		return
	}
	entries, _ := os.ReadDir("/proc/self/fd") // before Linux 5.11
	for _, entry := range entries {
		if fd, err := strconv.Atoi(entry.Name()); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

func newPilot(cfg Config) (*pilot, error) {
	if err := errors.Join(cfg.connect(), cfg.check(), cfg.fill()); err != nil {
		return nil, err
	}
	known, err := cfg.Catalog.open()
	if err != nil {
		return nil, err
	}
	client, err := cfg.dial()
	if err != nil {
		return nil, err
	}
	p := &pilot{
		cfg: cfg, client: client, sched: sched.Default(),
		log:    slog.Default().With("pilot", cfg.Pilot),
		wake:   make(chan struct{}, 1),
		duties: duties{known: map[uint64]*attempt{}}, exchange: exchange{jitter: jitter(cfg.Pilot)},
	}
	p.sched.React()
	p.prefetching = make(chan struct{}, maxPrefetch)
	p.hello = p.describe()
	roots := storage.Roots{State: p.cfg.Element, Folder: cfg.Workflow, Site: known != nil}
	p.stage = &stage.Area{Sched: p.sched, Log: p.log, Roots: roots, Storage: elements.New(roots, p.sched.Sleep),
		URLs: elements.NewURLs(), Catalog: known, Wake: p.poke}
	p.stage.Waits.Wake = p.poke
	p.jobs, p.endJobs = context.WithCancel(storage.WithPatience(
		storage.WithStallTime(context.Background(), cfg.StallTime), storage.Patience, p.stage.Waits.Away))
	return p, nil
}

func (p *pilot) prepare(ctx context.Context) (err error) {
	if p.cfg.Scratch != "" {
		if p.scratch, err = claimScratch(ctx, p.cfg.Scratch, p.cfg.Cache.Group, p.sched, p.log); err != nil {
			return err
		}
	}
	if err := p.checkEnvironment(ctx); err != nil {
		return err
	}
	p.has = p.cfg.resources()
	p.free = p.has.clone()
	if p.base, err = newBase(p.cfg.Environment); err != nil {
		return err
	}
	if p.tree, err = process.NewTree(p.sched); err != nil {
		return err
	}
	if p.workspace, err = claimSandboxes(&p.cfg, p.log); err != nil {
		return err
	}
	if err := p.openCache(); err != nil {
		return err
	}
	s, w := p.stage, p.workspace
	s.Folder, s.Dir = w.folder, w.dir
	s.Prefix, s.LogDir, s.LogBytes = p.cfg.Storage, p.cfg.LogDir, p.cfg.LogBytes
	p.spool = report.NewSpool(p.cfg.SpoolDir, p.log)
	p.boxes = process.NewMemoryBoxes(p.cfg.Pilot)
	p.watchdog = process.NewWatchdog(p.sched, &process.Scratch{Folder: w.folder, Disk: p.cfg.Disk}, p.cfg.useProcessors)
	p.openWorkers()
	p.watch = &inputWatch{mode: p.cfg.WatchInputs, steps: map[string]bool{}}
	return nil
}

func (p *pilot) close() {
	p.endJobs()
	p.watchdog.Close()
	p.workers.Wait()
	p.warm.Close()
	p.stage.Close()
	p.stage.Sharing.Close()
	if p.stage.Cache != nil {
		p.stage.Cache.Close()
	}
	p.boxes.Close()
	p.watch.close()
	p.workspace.close(p.log)
	p.tree.Close()
	p.mu.Lock()
	over := p.over
	p.mu.Unlock()
	p.scratch.release(over, p.log)
}

// announce tells the TaskQueue once why this pilot will not register.
func (p *pilot) announce(ctx context.Context, reason error) {
	ctx, cancel := context.WithTimeout(ctx, FarewellTimeout)
	defer cancel()
	p.log.Error("environment check failed", "error", reason)
	m := &wire.SyncRequest{
		Protocol: wire.Protocol, Pilot: p.cfg.Pilot, Seq: 1, Full: true, Leaving: true, Hello: p.describe(),
	}
	m.Hello.Error = report.FirstLine(reason.Error())
	if _, err := p.client.Sync(ctx, m); err != nil {
		p.log.Error("the TaskQueue could not be told", "error", err)
	}
}
