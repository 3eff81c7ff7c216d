package sweep

import (
	"context"
	"errors"
	"math"
	"net"
	"path/filepath"
	"sync"
	"testing"

	"fairway/orwl"
)

func sameBits(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func run(t *testing.T, c Cut, iterations int) []float64 {
	t.Helper()
	p := Program{Cut: c, Last: c.Rows, Iterations: iterations}
	if err := p.Build(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(p.Insert(context.Background()), p.Run(context.Background())); err != nil {
		t.Fatal(err)
	}
	matrix := make([]float64, c.N*c.N)
	Boundary(c.N, matrix)
	if err := p.Result(context.Background(), matrix); err != nil {
		t.Fatal(err)
	}
	return matrix
}

func TestSameBitsAsSequential(t *testing.T) {
	for _, n := range []int{12, 45} {
		for _, iterations := range []int{1, 11} {
			want := Sequential(n, iterations)
			for _, blocks := range [][2]int{{1, 1}, {1, 3}, {3, 1}, {2, 2}, {3, 3}} {
				for _, sweeps := range []int{1, 2, 5, 8} {
					for strips := 1; strips <= 3; strips++ {
						c := newCut(n, blocks[0], blocks[1], strips, sweeps)
						if got := run(t, c, iterations); !sameBits(got, want) {
							t.Errorf("%+v, %d iterations: other bits than the sequential sweep", c, iterations)
						}
					}
				}
			}
		}
	}
}

func TestBlockedSameBits(t *testing.T) {
	want := Sequential(300, 10)
	got, compute := Blocked(300, 10, 8)
	compute()
	if !sameBits(got, want) {
		t.Fatal("other bits")
	}
}

// Programs that reach each other's frontiers only by a connection give the same
// bits, with memory that is shared and with memory that is not.
func TestProcesses(t *testing.T) {
	const n, iterations = 60, 20
	want := Sequential(n, iterations)
	for network, options := range map[string][]orwl.Option{"tcp": nil, "unix": {orwl.Shared(), orwl.OnLoss(orwl.Skip)}} {
		t.Run(network, func(t *testing.T) {
			cut := NewCut(n, 3, 2, 4)
			programs := make([]*Program, 3)
			addresses := make([]string, len(programs))
			for i := range programs {
				programs[i] = &Program{Cut: cut, First: i, Last: i + 1, Iterations: iterations}
				must(t, programs[i].Build(options...))
				var s orwl.Server
				s.Add(programs[i].Frontiers()...)
				addresses[i] = filepath.Join(t.TempDir(), "socket")
				if network == "tcp" {
					addresses[i] = "127.0.0.1:0"
				}
				l, err := net.Listen(network, addresses[i])
				must(t, err)
				addresses[i] = l.Addr().String()
				go s.Serve(l)
				t.Cleanup(s.Close)
			}
			got := make([]float64, n*n)
			Boundary(n, got)
			ctx := context.Background()
			for i, p := range programs {
				var peers Peers
				for _, k := range []int{i - 1, i + 1} {
					if k >= 0 && k < len(programs) {
						peer, err := orwl.Dial(ctx, network, addresses[k])
						must(t, err)
						t.Cleanup(func() { peer.Close() })
						peers = append(peers, peer)
					}
				}
				p.Others = peers
				must(t, p.Insert(ctx))
			}
			var all sync.WaitGroup
			for _, p := range programs {
				all.Go(func() {
					if err := p.Run(ctx); err != nil {
						t.Error(err)
					}
				})
			}
			all.Wait()
			for _, p := range programs {
				must(t, p.Result(ctx, got))
			}
			if !sameBits(got, want) {
				t.Fatal("other bits than the sequential sweep")
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
