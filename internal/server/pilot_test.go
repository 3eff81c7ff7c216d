package server

import (
	"context"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/server/folder"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/wire"
)

// script is what the pilots of a test do with an attempt: it returns the
// contents of the outputs by LFN, or an exit code.
type script func(a *wire.Assignment, read func(lfn string) string) (outputs map[string]string, exitCode int)

// scripted is a batch system whose pilots are goroutines that speak the pilot
// protocol and carry out a script, one attempt after the other.
type scripted struct {
	t       testing.TB
	address string
	element storage.Element
	scratch string // where outputs are written before they are stored
	run     script
	stopped map[string]bool                        // launches that stop (SIGSTOP) with the first attempt that they get
	onStop  func()                                 // called then; may be nil
	dies    string                                 // launch that ends before Submit returns
	unheard string                                 // launch whose end is told before its pilot is heard, which then takes an attempt and is heard no more
	left    string                                 // launch of an earlier server that left no record of it; it never registers
	lie     func(name string, m *wire.SyncRequest) // changes what a pilot says; may be nil
	stored  func(a *wire.Assignment, pfn string)   // is told what was stored, before the server is
	refused map[string]error                       // of launches: what they were told
	stay    bool                                   // pilots that were refused do not leave, and say no more

	mu       sync.Mutex
	launched int
	executed map[string]int // executions by job
	cancel   map[string]context.CancelFunc
	names    map[string]string // p1, p2 and so on, of the launches that run
	ended    chan batch.End
	group    sync.WaitGroup
}

func newScripted(t testing.TB, run script) *scripted {
	return &scripted{
		t: t, scratch: t.TempDir(), run: run,
		executed: map[string]int{}, cancel: map[string]context.CancelFunc{}, ended: make(chan batch.End, 100),
		refused: map[string]error{}, names: map[string]string{},
	}
}

func (s *scripted) at(address string, folders folder.Layout) (batch.System, error) {
	s.element = elements.New(folders.Roots(), nil)
	s.address = strings.TrimPrefix(address, "unix:")
	return s, nil
}

func (s *scripted) Submit(_ context.Context, launch string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.launched++
	name := fmt.Sprintf("p%d", s.launched)
	s.names[launch] = name
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel[launch] = cancel
	if name == s.dies || name == s.unheard {
		delete(s.names, launch)
		s.ended <- batch.End{Launch: launch, Reason: "it was killed"}
		s.ended <- batch.End{Launch: "another"}
		for len(s.ended) > 0 {
			runtime.Gosched() // the server takes the second end when it has dealt with the first
		}
		if name == s.unheard {
			s.stopped = map[string]bool{name: true}
			s.group.Go(func() { s.pilot(ctx, launch, name) })
		}
		return nil
	}
	s.group.Go(func() {
		s.pilot(ctx, launch, name)
		s.mu.Lock()
		delete(s.names, launch)
		s.mu.Unlock()
		s.ended <- batch.End{Launch: launch, Reason: "it left"}
	})
	return nil
}

func (s *scripted) Withdraw(_ context.Context, launches ...string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, launch := range launches {
		if launch == s.left {
			s.left = ""
			s.ended <- batch.End{Launch: launch, Reason: "it was withdrawn"}
		} else if cancel := s.cancel[launch]; cancel != nil && !s.stopped[s.names[launch]] {
			cancel()
		}
	}
	return nil
}

func (s *scripted) Status(context.Context) (map[string]batch.Status, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	running := map[string]batch.Status{}
	for launch := range s.names {
		running[launch] = batch.Status{State: batch.Running, Jobs: 1}
	}
	if s.left != "" {
		running[s.left] = batch.Status{State: batch.Running, Jobs: 1}
	}
	return running, nil
}

func (s *scripted) Ended() <-chan batch.End { return s.ended }

func (s *scripted) Close() error {
	s.mu.Lock()
	for _, cancel := range s.cancel {
		cancel()
	}
	s.mu.Unlock()
	s.group.Wait()
	close(s.ended)
	return nil
}

func (s *scripted) pilot(ctx context.Context, launch, name string) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", s.address)
	}}
	defer transport.CloseIdleConnections()
	client := wire.NewTaskQueueClient(&http.Client{Transport: transport}, "http://fairway")
	hello := &wire.PilotInfo{
		Host: "test", Site: LocalSite, Launch: launch,
		Has: &wire.Resources{MilliCpus: 1000, MemoryBytes: 1 << 30, DiskBytes: 1 << 30},
	}
	if name == s.unheard || s.stay {
		hello.Lease = durationpb.New(time.Hour)
	}
	request := &wire.SyncRequest{
		Protocol: wire.Protocol, Pilot: fmt.Sprintf("%s-%p", launch, s), Seq: 1, Full: true, Hello: hello, Hold: true,
	}
	for {
		if s.lie != nil {
			s.lie(name, request)
		}
		answer, err := client.Sync(ctx, request)
		_, refused := access.Refused(err)
		if ctx.Err() != nil && !refused {
			return
		}
		if refused {
			s.mu.Lock()
			s.refused[name] = err
			s.mu.Unlock()
			if s.stay {
				<-ctx.Done() // until it is killed
			}
			return
		}
		next := &wire.SyncRequest{Protocol: wire.Protocol, Pilot: request.Pilot, Seq: request.Seq + 1, Hold: true}
		if err != nil || answer.GetNeedFull() {
			if strings.Contains(fmt.Sprint(err), "no such file") || strings.Contains(fmt.Sprint(err), "refused") {
				return
			}
			next.Full, next.Hello = true, hello
			next.Ended = request.Ended
			request = next
			continue
		}
		if answer.GetLeave() || answer.GetLeaveNow() {
			next.Leaving = true
			_, _ = client.Sync(ctx, next)
			return
		}
		if s.stopped[name] && len(answer.GetRun()) > 0 {
			if s.onStop != nil {
				s.onStop()
			}
			<-ctx.Done() // until it is killed
			return
		}
		next.LastAnswer = answer.GetNumber()
		for _, a := range answer.GetRun() {
			next.Ended = append(next.Ended, &wire.Report{Result: s.execute(a), Ticket: a.GetTicket()})
		}
		next.Hold = len(next.Ended) == 0
		request = next
	}
}

func (s *scripted) execute(a *wire.Assignment) *wire.Result {
	s.mu.Lock()
	s.executed[a.GetName()]++
	s.mu.Unlock()
	now := timestamppb.Now()
	result := &wire.Result{Run: a.GetRun(), Job: a.GetJob(), Attempt: a.GetAttempt(), Usage: &wire.Usage{
		Start: now, End: now, StageInStart: now, StageOutEnd: now,
	}}
	read := func(lfn string) string {
		for _, in := range a.GetInputs() {
			if in.GetFile().GetLfn() == lfn {
				file, err := s.element.Open(context.Background(), in.GetPfn())
				if err != nil {
					s.t.Errorf("job %s reads %s: %v", a.GetName(), lfn, err)
					return ""
				}
				defer func() { _ = file.Close() }()
				text, err := io.ReadAll(file)
				if err != nil {
					s.t.Errorf("job %s reads %s: %v", a.GetName(), lfn, err)
				}
				return string(text)
			}
		}
		s.t.Errorf("job %s has no input %s", a.GetName(), lfn)
		return ""
	}
	outputs, code := s.run(a, read)
	if code != 0 {
		result.Outcome, result.ExitCode, result.Message = wire.Outcome_OUTCOME_EXITED, int32(code),
			fmt.Sprintf("exit code %d", code)
		return result
	}
	for _, out := range a.GetOutputs() {
		for lfn, text := range outputs {
			if fits, _ := path.Match(out.GetLfn(), lfn); !fits {
				continue
			}
			pfn := storage.OutputPFN(a.GetStorage(), lfn, out.GetVersion(), a.GetAttempt())
			made := filepath.Join(s.scratch, fmt.Sprint(a.GetAttempt(), len(result.GetOutputs())))
			if err := errors.Join(
				os.WriteFile(made, []byte(text), 0o644), s.element.Put(context.Background(), made, pfn),
			); err != nil {
				s.t.Error(err)
			}
			if s.stored != nil {
				s.stored(a, pfn)
			}
			result.Outputs = append(result.Outputs, &wire.WrittenFile{
				Lfn: lfn, Version: out.GetVersion(), Pfn: pfn, Size: int64(len(text)), Adler32: adler32.Checksum([]byte(text)),
			})
		}
	}
	return result
}

func (s *scripted) total() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := 0
	for _, n := range s.executed {
		total += n
	}
	return total
}
