package pilot

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"fairway/internal/wire"
)

// feeder is a server that has count attempts of one command, and keeps the
// pilot supplied with some ahead.
type feeder struct {
	mu      sync.Mutex
	news    sync.Cond
	count   int
	ahead   int
	given   int
	unseen  []given // by answers that the pilot has not told of
	ended   map[uint64]bool
	newest  uint64
	number  uint64
	syncs   int
	command *wire.Payload
}

type given struct {
	number     uint64
	assignment *wire.Assignment
}

func (f *feeder) Sync(_ context.Context, m *wire.SyncRequest) (*wire.SyncAnswer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.syncs++
	f.newest = max(f.newest, m.GetSeq())
	for _, r := range m.GetEnded() {
		f.ended[r.GetResult().GetAttempt()] = true
	}
	f.news.Broadcast()
	for m.GetSeq() == f.newest && f.given-len(f.ended) >= f.ahead && len(m.GetEnded()) == 0 {
		f.news.Wait()
	}
	if m.GetSeq() < f.newest {
		return &wire.SyncAnswer{Superseded: true}, nil
	}
	f.number++
	f.unseen = slices.DeleteFunc(f.unseen, func(g given) bool { return g.number <= m.GetLastAnswer() })
	a := &wire.SyncAnswer{Number: f.number, Seen: m.GetSeq(), NextSync: durationpb.New(time.Minute)}
	for f.given < f.count && f.given-len(f.ended) < f.ahead {
		f.given++
		f.unseen = append(f.unseen, given{
			f.number, &wire.Assignment{Job: uint32(f.given), Attempt: uint64(f.given), Name: "n", Try: 1,
				Payload: encoded(f.command)},
		})
	}
	for _, g := range f.unseen {
		a.Run = append(a.Run, g.assignment)
	}
	return a, nil
}

// BenchmarkNoop runs `true` through a real pilot on two slots, beside the
// bare loop. Compare the two; cpu-us/op is the processor time with that of
// the commands.
func BenchmarkNoop(b *testing.B) {
	b.Run("bare", func(b *testing.B) {
		before := processorTime()
		defer func() { b.ReportMetric(float64(processorTime()-before)/1e3/float64(b.N), "cpu-us/op") }()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				exec.Command("true").Run()
			}
		})
	})
	for _, ahead := range []int{3, 6, 64} {
		b.Run(fmt.Sprint("ahead", ahead), func(b *testing.B) { benchmarkNoop(b, ahead) })
	}
}

// processorTime is what this process and its ended children have used.
func processorTime() (sum int64) {
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		if syscall.Getrusage(who, &used) == nil {
			sum += used.Utime.Nano() + used.Stime.Nano()
		}
	}
	return sum
}

func benchmarkNoop(b *testing.B, ahead int) {
	folder := b.TempDir()
	f := &feeder{count: b.N, ahead: ahead, ended: map[uint64]bool{}, command: &wire.Payload{Argv: []string{"true"}}}
	f.news.L = &f.mu
	listener, err := net.Listen("unix", folder+"/s")
	if err != nil {
		b.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(wire.NewTaskQueueHandler(f))
	server := &http.Server{Handler: mux}
	defer server.Close()
	go server.Serve(listener)
	cfg := Config{Server: "unix:" + folder + "/s", Launch: "bench", SandboxDir: folder + "/sandbox",
		LogDir: folder + "/logs", MilliCPUs: 2000, Memory: 1 << 30}
	encoded, _ := cfg.Encode()
	pilot := exec.Command("/proc/self/exe")
	pilot.Env = append(pilot.Environ(), ConfigVariable+"="+encoded)
	pilot.Stderr = os.Stderr
	b.ResetTimer()
	if err := pilot.Start(); err != nil {
		b.Fatal(err)
	}
	f.mu.Lock()
	for len(f.ended) < b.N {
		f.news.Wait()
	}
	f.mu.Unlock()
	b.StopTimer()
	pilot.Process.Signal(syscall.SIGKILL)
	pilot.Wait()
	used := pilot.ProcessState.SysUsage().(*syscall.Rusage)
	b.ReportMetric(float64(used.Utime.Nano()+used.Stime.Nano())/1e3/float64(b.N), "cpu-us/op")
	b.ReportMetric(float64(f.syncs)/float64(b.N), "syncs/op")
}
