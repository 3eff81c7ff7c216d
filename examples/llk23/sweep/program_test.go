package sweep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"fairway/lib/orwl"
)

func sameBits(a, b []float64) bool {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return false
		}
	}
	return len(a) == len(b)
}

func run(t rapid.TB, c Cut, iterations int) []float64 {
	t.Helper()
	return runProgram(t, &Program{Cut: c, Last: c.Rows, Iterations: iterations})
}

func runProgram(t rapid.TB, p *Program) []float64 {
	t.Helper()
	c := p.Cut
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
				for k, sweeps := range []int{1, 2, 5, 8} {
					c := newCut(n, blocks[0], blocks[1], 1+k%3, sweeps)
					if got := run(t, c, iterations); !sameBits(got, want) {
						t.Errorf("%+v, %d iterations: other bits than the sequential sweep", c, iterations)
					}
				}
			}
		}
	}
}

func TestSameBitsForRandomCuts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newCut(rapid.IntRange(3, 42).Draw(t, "n"), rapid.IntRange(1, 6).Draw(t, "rows"),
			rapid.IntRange(1, 6).Draw(t, "columns"),
			rapid.IntRange(1, 3).Draw(t, "strips"), rapid.IntRange(1, 26).Draw(t, "sweeps"))
		if c.check() != nil {
			if max(c.Rows, c.Columns*c.Strips) <= c.N-2 {
				t.Fatalf("%+v is refused: %v", c, c.check())
			}
			if new(Program{Cut: c, Last: c.Rows, Iterations: 1}).Build() == nil {
				t.Fatalf("%+v is built", c)
			}
			return
		}
		iterations := rapid.IntRange(1, 30).Draw(t, "iterations")
		if !sameBits(run(t, c, iterations), Sequential(c.N, iterations)) {
			t.Fatalf("%+v, %d iterations: other bits than the sequential sweep", c, iterations)
		}
	})
}

// Two blocks take turns when they are exchanged as a whole; with strips both are
// computed all the time.
func TestStripsBreakTheCircleOfTwoBlocks(t *testing.T) {
	const block = 12 * time.Millisecond
	for strips, want := range map[int]time.Duration{1: 2 * block, 4: block} {
		p := Program{Cut: newCut(90, 2, 1, strips, 4), Last: 2, Iterations: 8}
		must(t, errors.Join(p.Build(), p.Insert(context.Background())))
		if got, limit, err := p.order().Period(p.times(block)); err != nil || got != want {
			t.Errorf("%d strips: a block's iteration takes %v and not %v: %v (%v)", strips, got, want, limit, err)
		}
		must(t, p.Run(context.Background()))
	}
}

// order is that of the requests, and of the steps of each main task.
func (p *Program) order() orwl.Order {
	o := orwl.OrderOf(slices.Collect(maps.Values(p.data))...)
	for _, at := range p.places() {
		turns := fmt.Sprintf("main task %d,%d", at.row, at.column/p.Strips)
		o[turns] = append(o[turns], orwl.Place{Task: mainName(at), Mode: orwl.Write})
	}
	return o
}

// times is how long each strip takes when a block takes a given time.
func (p *Program) times(block time.Duration) map[string]time.Duration {
	all := make(map[string]time.Duration)
	for _, at := range p.places() {
		all[mainName(at)] = block / time.Duration(p.Strips)
	}
	return all
}

// With the bounds of a block moving, all blocks have the same work.
func TestBlocksHaveTheSameWork(t *testing.T) {
	c := newCut(300, 2, 1, 1, 7)
	var work [2]int
	for row := range work {
		for sweep := range c.Sweeps {
			from, to := c.strip(cell{row, 0}).rows.at(sweep)
			work[row] += to - from
		}
	}
	if work[0] != work[1] {
		t.Errorf("rows to update in the upper and the lower block: %v", work)
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

func TestSchemeOfThePaperHasTheSameBits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := PaperCut(rapid.IntRange(3, 30).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "rows"),
			rapid.IntRange(1, 5).Draw(t, "columns"))
		if c.check() != nil {
			t.Skip("more blocks than elements")
		}
		iterations := rapid.IntRange(1, 12).Draw(t, "iterations")
		got := runProgram(t, &Program{Cut: c, Last: c.Rows, Iterations: iterations, Paper: true})
		if !sameBits(got, Sequential(c.N, iterations)) {
			t.Fatalf("%+v, %d iterations: other bits than the sequential sweep", c, iterations)
		}
	})
}

// Programs that reach each other's frontiers only by a connection give the same
// bits, with memory that is shared and with memory that is not.
func TestProcesses(t *testing.T) {
	for network, options := range map[string][]orwl.Option{"tcp": nil, "unix": {orwl.Shared(), orwl.OnLoss(orwl.Skip)}} {
		for _, paper := range []bool{false, true} {
			t.Run(fmt.Sprint(network, " paper ", paper), func(t *testing.T) { testProcesses(t, network, options, paper) })
		}
	}
}

func testProcesses(t *testing.T, network string, options []orwl.Option, paper bool) {
	const n, iterations = 60, 20
	want := Sequential(n, iterations)
	cut := NewCut(n, 3, 2, 4)
	if paper {
		cut = PaperCut(n, 3, 2)
	}
	programs := make([]*Program, 3)
	addresses := make([]string, len(programs))
	for i := range programs {
		programs[i] = &Program{Cut: cut, First: i, Last: i + 1, Iterations: iterations, Paper: paper}
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
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
