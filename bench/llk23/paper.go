package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"fairway/bench/measure"
	"fairway/examples/llk23/sweep"
	"fairway/lib/subprocess"
)

// experiment is one of section 4.2, as a table with a line for each x and a
// column for each series, and as a plot.
type experiment struct {
	file, title, x, y string
	paper             string // what the paper's figure 2 says
	here              string // what is to be seen in ours
	series            []series
}

type series struct {
	name   string
	points plotter.XYs
}

var coreNames = map[int]string{1: "1 core", 2: "2 cores"}

// What is to be seen in our figures, beside those of the paper.
const (
	hereElement = "the same, but 4 blocks are above the others: of 2 x 2 blocks two can compute at a time and never " +
		"three, so 2 cores have no slack. In the paper each block has a node of its own. Ours takes a fifth " +
		"to a ninth of the time of theirs."
	hereComputing = "theirs goes from 24 % to 49 % with 4 blocks, nearly as in the paper, and to 95 % with more; ours " +
		"from 51 % to 65 %, and to 94 %. What other programs take counts as waiting."
	hereOvercommitting = "the same: 4 processes take 1.0 to 1.2 times as long as one, in both schemes."
	hereScaling        = "the same. On 2 cores 4 blocks take the longest, as they wait for each other."
	hereHosts          = "ours takes 1.0 to 1.9 times as long over 2 to 8 hosts as on one, theirs 1.1 to 2.6 times, " +
		"since each sweep waits for one line after the other. Neither a line of 100 Mbit/s nor a delay " +
		"matters much to ours."
)

// defaultBlock is the side of the largest blocks. The paper has 4000 and 3000, on nodes with the memory
// for one of them each.
const defaultBlock = 500

// paperRounds is how often a configuration runs; the median counts. One run of a large matrix is
// long enough.
func (c config) paperRounds() int {
	if c.large() {
		return 1
	}
	return 3
}

func (c config) large() bool { return c.N*c.N > elements/10 }

// repeatPaper does the experiments of section 4.2 in sizes that fit here, and
// writes plots and a text with the tables into a folder. block is the side of the largest blocks, of
// which there are up to 64; scaled is that of the blocks of which there are more and more. note says what
// else there was, for the first paragraph.
func repeatPaper(folder string, block, scaled int, note string) error {
	perElement, computing, err := blockSizes(block)
	if err != nil {
		return err
	}
	overcommitted, err := overcommitting(block)
	if err != nil {
		return err
	}
	scaling, err := weakScaling(scaled)
	if err != nil {
		return err
	}
	var text strings.Builder
	m := measure.ThisMachine()
	text.WriteString("# Kernel 23: the experiments of section 4.2\n\n")
	text.WriteString(wrapped(fmt.Sprintf("Made by `go run ./bench/llk23 -paper -block %d -scaled %d` on %d cores of "+
		"%s. The figures of paper 2 are from nodes with 4 cores at 2.53 GHz and Gigabit Ethernet. *Theirs* is the paper's "+
		"own scheme, with one sweep in an iteration; ours does up to %d. %s", block, scaled, m.Cores, m.CPU,
		sweep.DefaultSweeps, note)))
	for _, e := range []experiment{perElement, computing, overcommitted, scaling} {
		if err := e.plot(folder); err != nil {
			return err
		}
		e.write(&text)
	}
	text.WriteString("\n[RESULTS-hosts.md](RESULTS-hosts.md) has 64 blocks over several hosts.\n")
	return os.WriteFile(filepath.Join(folder, "RESULTS-paper.md"), []byte(text.String()), 0o644)
}

// median runs a configuration and returns the medians of time and waiting.
func median(c config) (answer, error) {
	fmt.Fprintf(os.Stderr, "llk23: %d x %d blocks of %d², %d cores, %d processes\n", c.Rows, c.Columns, (c.N-2)/c.Rows,
		c.Cores, c.Processes)
	defer confineThread(c.Cores)()
	cmd, err := childCommand(c)
	if err != nil {
		return answer{}, err
	}
	r, err := subprocess.Start(cmd)
	if err != nil {
		return answer{}, err
	}
	defer r.Stop()
	var ns, waiting []float64
	for range c.paperRounds() {
		a, err := ask(r)
		if err != nil {
			return answer{}, fmt.Errorf("%v: %w", c, err)
		}
		ns, waiting = append(ns, a.ns), append(waiting, a.waitingShare)
	}
	return answer{ns: measure.Median(ns), waitingShare: measure.Median(waiting)}, nil
}

// theirs is the paper's scheme for the same blocks, with fewer sweeps, as they take longer.
func (c config) theirs() config {
	c.Scheme = schemePaper
	c.Iterations = max(4, c.Iterations/8)
	return c
}

// squares is rows x rows blocks of a size.
func squares(rows, size, cores, processes int, transport string) config {
	n := rows*size + 2
	c := config{N: n, Cores: cores, Processes: processes, Transport: transport, Rows: rows, Columns: rows}
	c.Iterations = min(40*sweep.DefaultSweeps, iterations(n, elements))
	if c.large() { // a second or two are enough
		c.Iterations = sweep.DefaultSweeps
	}
	return c
}

func blockSizes(largest int) (perElement, computing experiment, err error) {
	perElement = experiment{
		file: "llk23-element.svg", title: "Time per element", x: "elements per side of a block", y: "ns per element",
		paper: "the time falls with the size of the blocks towards a limit. 4 blocks are below the others, which look alike.",
		here:  hereElement,
	}
	computing = experiment{
		file: "llk23-computing.svg", title: "Share of computing", x: "elements per side of a block",
		y:     "% of the time of all cores",
		paper: "the share is almost nothing for small blocks, and about 55 % for large ones.",
		here:  hereComputing,
	}
	sizes := []int{32, 64, 128, 256, 512}
	if largest > sizes[len(sizes)-1] {
		sizes = append(sizes, largest)
	}
	for _, theirs := range []bool{false, true} {
		for _, rows := range []int{2, 4, 8} {
			name := fmt.Sprintf("%d blocks", rows*rows)
			if theirs {
				name += ", theirs"
			}
			e, c := series{name: name}, series{name: name}
			for _, size := range sizes {
				config := squares(rows, size, 2, 1, "memory")
				if theirs {
					config = config.theirs()
				}
				a, err := median(config)
				if err != nil {
					return perElement, computing, err
				}
				e.points = append(e.points, plotter.XY{X: float64(size), Y: a.ns})
				c.points = append(c.points, plotter.XY{X: float64(size), Y: 100 * (1 - a.waitingShare)})
			}
			perElement.series, computing.series = append(perElement.series, e), append(computing.series, c)
		}
	}
	return perElement, computing, nil
}

func overcommitting(block int) (experiment, error) {
	e := experiment{
		file: "llk23-overcommitting.svg", title: fmt.Sprintf("64 blocks of %d x %[1]d", block),
		x: "processes", y: "ms per iteration",
		paper: "the time of an iteration grows only slightly beyond what fewer cores explain: 64 blocks of 4000 x 4000 on " +
			"64 down to 4 nodes.",
		here: hereOvercommitting,
	}
	for _, theirs := range []bool{false, true} {
		for _, cores := range []int{1, 2} {
			s := series{name: coreNames[cores]}
			if theirs {
				s.name += ", theirs"
			}
			for _, processes := range []int{1, 2, 4} {
				transport := "shared"
				if processes == 1 {
					transport = "memory"
				}
				c := squares(8, block, cores, processes, transport)
				if theirs {
					c = c.theirs()
				}
				a, err := median(c)
				if err != nil {
					return e, err
				}
				s.points = append(s.points, plotter.XY{X: float64(processes), Y: a.ns * float64((c.N-2)*(c.N-2)) / 1e6})
			}
			e.series = append(e.series, s)
		}
	}
	return e, nil
}

// bytesOfElement is what an element takes, with its coefficients.
const bytesOfElement = 48

// weakScaling has as many blocks as the memory of the machine has room for.
func weakScaling(block int) (experiment, error) {
	var memory unix.Sysinfo_t
	if err := unix.Sysinfo(&memory); err != nil {
		return experiment{}, fmt.Errorf("how much memory there is: %w", err)
	}
	most := int(memory.Totalram * uint64(memory.Unit) * 3 / 4 / bytesOfElement)
	if 4*block*block > most {
		return experiment{}, fmt.Errorf("-scaled %d: 4 such blocks do not fit into memory; take smaller ones", block)
	}
	e := experiment{
		file: "llk23-scaling.svg", title: fmt.Sprintf("Blocks of %d x %[1]d", block),
		x: "blocks", y: "µs per iteration and block",
		paper: "more blocks of the same size, of 3000 x 3000, on more nodes, hardly take longer.",
		here:  hereScaling,
	}
	for _, theirs := range []bool{false, true} {
		for _, cores := range []int{1, 2} {
			s := series{name: coreNames[cores]}
			if theirs {
				s.name += ", theirs"
			}
			for _, rows := range []int{2, 4, 6, 8} {
				if rows*rows*block*block > most {
					break
				}
				c := squares(rows, block, cores, 1, "memory")
				if theirs {
					c = c.theirs()
				}
				a, err := median(c)
				if err != nil {
					return e, err
				}
				s.points = append(s.points, plotter.XY{X: float64(rows * rows), Y: a.ns * float64(block*block) / 1e3})
			}
			e.series = append(e.series, s)
		}
	}
	return e, nil
}

func (e experiment) plot(folder string) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = e.title, e.x, e.y
	var lines []any
	for _, s := range e.series {
		lines = append(lines, s.name, s.points)
	}
	if err := plotutil.AddLinePoints(p, lines...); err != nil {
		return err
	}
	p.Y.Min, p.Y.Max = 0, 1.5*p.Y.Max // room for the legend, which is above the lines
	p.Legend.Top = true
	p.X.Max += (p.X.Max - p.X.Min) / 25 // room for the last label
	p.X.Tick.Marker = e.ticks()
	return p.Save(16*vg.Centimeter, 10*vg.Centimeter, filepath.Join(folder, e.file))
}

// ticks stand where something was measured, with labels that do not overlap.
func (e experiment) ticks() plot.ConstantTicks {
	var all plot.ConstantTicks
	points := e.series[0].points
	first, last := points[0].X, points[len(points)-1].X
	free := first
	for _, p := range points {
		t := plot.Tick{Value: p.X}
		if p.X >= free {
			t.Label, free = fmt.Sprint(p.X), p.X+(last-first)/20
		}
		all = append(all, t)
	}
	return all
}

// wrapped is a paragraph in lines of at most 100 characters.
func wrapped(paragraph string) string {
	var b strings.Builder
	width := 0
	for _, word := range strings.Fields(paragraph) {
		length := utf8.RuneCountInString(word)
		if width > 0 && width+1+length > 100 {
			b.WriteByte('\n')
			width = 0
		} else if width > 0 {
			b.WriteByte(' ')
			width++
		}
		b.WriteString(word)
		width += length
	}
	return b.String() + "\n"
}

func (e experiment) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n%s\n![%s](%s)\n\n| %s |", e.title, wrapped("The paper: "+e.paper),
		wrapped("Here: "+e.here), e.title, e.file, e.x)
	for _, s := range e.series {
		fmt.Fprintf(b, " %s |", s.name)
	}
	fmt.Fprintf(b, "\n| --- |%s\n", strings.Repeat(" --- |", len(e.series)))
	for i, p := range e.series[0].points {
		fmt.Fprintf(b, "| %g |", p.X)
		for _, s := range e.series {
			fmt.Fprintf(b, " %.2f |", s.points[i].Y)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "\nin %s\n", e.y)
}
