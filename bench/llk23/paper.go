package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
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
	paper             string                    // what the paper's figure 2 says
	here              func(e experiment) string // what is to be seen in ours, from the points
	series            []series
}

type series struct {
	name   string
	points plotter.XYs
}

var coreNames = map[int]string{1: "1 core", 2: "2 cores"}

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

// of is the configuration in the paper's scheme, or as it is.
func (c config) of(theirs bool) config {
	if theirs {
		return c.theirs()
	}
	return c
}

// squares is rows x columns blocks of so many elements as a square of a size has.
func squares(rows, columns, size, cores, processes int, transport string) config {
	n := int(math.Round(float64(size)*math.Sqrt(float64(rows*columns)))) + 2
	c := config{N: n, Cores: cores, Processes: processes, Transport: transport, Rows: rows, Columns: columns}
	c.Iterations = min(40*sweep.DefaultSweeps, iterations(n, elements))
	if c.large() { // a second or two are enough
		c.Iterations = sweep.DefaultSweeps
	}
	return c
}

// squareRoots are those of the numbers of blocks that the paper divides a matrix into.
var squareRoots = []int{2, 4, 6, 8, 10}

// coresOfBlocks are the processors of this experiment.
const coresOfBlocks = 2

func blockSizes(largest int) (perElement, computing experiment, err error) {
	perElement = experiment{
		file: "llk23-element.svg", title: "Time per element", x: "elements per side of a block", y: "ns per element",
		paper: "the time falls with the size of the blocks towards a limit. 4 blocks are below the others, which look alike.",
		here:  elementsHere,
	}
	computing = experiment{
		file: "llk23-computing.svg", title: "Share of computing", x: "elements per side of a block",
		y: "% of the time of a main task",
		paper: "the share is almost nothing for small blocks, and about 55 % for large ones. There, each block has a node " +
			"of its own.",
		here: computingHere,
	}
	most, err := elementsThatFit()
	if err != nil {
		return perElement, computing, err
	}
	sizes := []int{32, 64, 128, 256, 512}
	if largest > sizes[len(sizes)-1] {
		sizes = append(sizes, largest)
	}
	for _, theirs := range []bool{false, true} {
		for _, rows := range squareRoots {
			e, c := series{name: ofScheme(fmt.Sprintf("%d blocks", rows*rows), theirs)}, series{}
			for _, size := range sizes {
				if rows*rows*size*size > most {
					break
				}
				config := squares(rows, rows, size, coresOfBlocks, 1, "memory").of(theirs)
				a, err := median(config)
				if err != nil {
					return perElement, computing, err
				}
				// Of the time of a main task, which is that of the run, it can compute no more than its part of the processors.
				share := 100 * (1 - a.waitingShare) * coresOfBlocks / float64(rows*rows)
				e.points = append(e.points, plotter.XY{X: float64(size), Y: a.ns})
				c.points = append(c.points, plotter.XY{X: float64(size), Y: share})
			}
			c.name = e.name
			perElement.series, computing.series = append(perElement.series, e), append(computing.series, c)
		}
	}
	return perElement, computing, nil
}

// ofScheme is the name of a series of ours, or of the paper's scheme.
func ofScheme(name string, theirs bool) string {
	if theirs {
		return name + ", theirs"
	}
	return name
}

func elementsHere(e experiment) string {
	ours, theirs := e.halves()
	last := func(s series) float64 { return s.points[len(s.points)-1].Y }
	falls := 0
	for _, s := range e.series {
		if last(s) < s.points[0].Y {
			falls++
		}
	}
	least, most := ratios(theirs, ours)
	text := fmt.Sprintf("from the smallest to the largest blocks the time falls in %d of %d lines. ", falls, len(e.series))
	for _, half := range [][]series{ours, theirs} {
		others := []float64{}
		for _, s := range half[1:] {
			others = append(others, last(s))
		}
		text += fmt.Sprintf("%s: %.2f ns with the largest, the others %.2f to %.2f. ", half[0].name,
			last(half[0]), slices.Min(others), slices.Max(others))
	}
	return text + fmt.Sprintf("Theirs takes %.1f to %.1f times the time of ours. Of 2 x 2 blocks two can compute at a "+
		"time and never three, so 2 cores have no slack; in the paper each block has a node of its own.", least, most)
}

func computingHere(e experiment) string {
	var four, others []string
	for _, s := range e.series {
		first, last, n := s.points[0].Y, s.points[len(s.points)-1].Y, blocksOf(s.name)
		if n == 4 {
			four = append(four, fmt.Sprintf("%s: from %.1f to %.1f %%", s.name, first, last))
			continue
		}
		others = append(others, fmt.Sprintf("%s %.0f %%", s.name, last*float64(n)/coresOfBlocks))
	}
	return fmt.Sprintf("%s. On %d cores a main task of n blocks can compute for %d/n of its time at most, 50 %% of 4 and "+
		"2 %% of 100. Of that, the largest blocks reach: %s. What other programs take counts as waiting.",
		strings.Join(four, "; "), coresOfBlocks, coresOfBlocks, strings.Join(others, ", "))
}

// hostsHere is what is to be seen over several hosts.
func hostsHere(rows []hostRow) string {
	text := []string{}
	for _, scheme := range []string{schemeOurs, schemePaper} {
		least, most := math.Inf(1), 0.0
		for _, r := range rows {
			if r.Hosts > 1 && r.Scheme == scheme {
				least, most = min(least, r.OneHost), max(most, r.OneHost)
			}
		}
		text = append(text, fmt.Sprintf("%.1f to %.1f times", least, most))
	}
	return fmt.Sprintf("over several hosts ours takes %s as long as on one, and theirs %s, since each sweep waits for "+
		"one line after the other.", text[0], text[1])
}

// blocksOf is the number with which the name of a series begins.
func blocksOf(name string) (n int) {
	_, _ = fmt.Sscanf(name, "%d blocks", &n)
	return n
}

// halves are the series of our scheme, and those of the paper's.
func (e experiment) halves() (ours, theirs []series) {
	for _, s := range e.series {
		if strings.HasSuffix(s.name, ", theirs") {
			theirs = append(theirs, s)
		} else {
			ours = append(ours, s)
		}
	}
	return ours, theirs
}

// ratios are the least and the greatest quotient of the points of some series by those of others.
func ratios(of, by []series) (least, most float64) {
	least = math.Inf(1)
	for i, s := range of {
		for k, p := range s.points {
			if k < len(by[i].points) {
				r := p.Y / by[i].points[k].Y
				least, most = min(least, r), max(most, r)
			}
		}
	}
	return least, most
}

// growth is how many times as much the last point of each series is as the first, least and greatest.
func growth(all []series) (least, most float64) {
	least = math.Inf(1)
	for _, s := range all {
		r := s.points[len(s.points)-1].Y / s.points[0].Y
		least, most = min(least, r), max(most, r)
	}
	return least, most
}

func overcommitting(block int) (experiment, error) {
	e := experiment{
		file: "llk23-overcommitting.svg", title: fmt.Sprintf("64 blocks of %d x %[1]d", block),
		x: "processes", y: "ms per iteration",
		paper: "the time of an iteration grows only slightly beyond what fewer cores explain: 64 blocks of 4000 x 4000 on " +
			"64 down to 4 nodes.",
		here: func(e experiment) string {
			ours, theirs := e.halves()
			least, most := growth(ours)
			low, high := growth(theirs)
			return fmt.Sprintf("4 processes take %.1f to %.1f times as long as one in our scheme, %.1f to %.1f times in theirs.",
				least, most, low, high)
		},
	}
	for _, theirs := range []bool{false, true} {
		for _, cores := range []int{1, 2} {
			s := series{name: ofScheme(coreNames[cores], theirs)}
			for _, processes := range []int{1, 2, 4} {
				transport := "shared"
				if processes == 1 {
					transport = "memory"
				}
				c := squares(8, 8, block, cores, processes, transport).of(theirs)
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

// elementsThatFit is how many elements the memory of the machine has room for.
func elementsThatFit() (int, error) {
	var memory unix.Sysinfo_t
	if err := unix.Sysinfo(&memory); err != nil {
		return 0, fmt.Errorf("how much memory there is: %w", err)
	}
	return int(memory.Totalram * uint64(memory.Unit) * 3 / 4 / bytesOfElement), nil
}

// blocksOfNode are how many blocks a node has, in the paper too. A node is one core here.
const blocksOfNode = 16

// weakScaling has as many nodes as there are cores, in steps of twice as many.
func weakScaling(block int) (experiment, error) {
	most, err := elementsThatFit()
	if err != nil {
		return experiment{}, err
	}
	if blocksOfNode*block*block > most {
		return experiment{}, fmt.Errorf("-scaled %d: %d such blocks do not fit into memory; take smaller ones", block,
			blocksOfNode)
	}
	e := experiment{
		file: "llk23-scaling.svg", title: fmt.Sprintf("%d blocks of %d x %[2]d for each node", blocksOfNode, block),
		x: "nodes, of one core each", y: "ms per iteration",
		paper: "the time of an iteration hardly grows from 4 to 64 nodes of 4 cores, with 16 blocks of 3000 x 3000 on each.",
		here: func(e experiment) string {
			points := e.series[0].points
			if len(points) < 2 {
				return "there was memory, or there were cores, for one node only."
			}
			ours, theirs := e.halves()
			o, _ := growth(ours)
			t, _ := growth(theirs)
			return fmt.Sprintf("on %g nodes an iteration takes %.2f times as long as on one in our scheme, %.2f times in "+
				"theirs. All nodes are cores of one machine, and share its memory.", points[len(points)-1].X, o, t)
		},
	}
	for _, theirs := range []bool{false, true} {
		s := series{name: ofScheme("16 blocks a node", theirs)}
		for nodes, rows, columns := 1, 4, 4; nodes <= runtime.NumCPU(); nodes *= 2 {
			if nodes*blocksOfNode*block*block > most {
				break
			}
			c := squares(rows, columns, block, nodes, 1, "memory").of(theirs)
			a, err := median(c)
			if err != nil {
				return e, err
			}
			s.points = append(s.points, plotter.XY{X: float64(nodes), Y: a.ns * float64((c.N-2)*(c.N-2)) / 1e6})
			if rows == columns {
				rows *= 2
			} else {
				columns *= 2
			}
		}
		e.series = append(e.series, s)
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
	p.Y.Min, p.Y.Max = 0, (1.3+0.1*float64(len(e.series)))*p.Y.Max // the legend is above the lines
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
		wrapped("Here: "+e.here(e)), e.title, e.file, e.x)
	for _, s := range e.series {
		fmt.Fprintf(b, " %s |", s.name)
	}
	fmt.Fprintf(b, "\n| --- |%s\n", strings.Repeat(" --- |", len(e.series)))
	for i, p := range e.series[0].points {
		fmt.Fprintf(b, "| %g |", p.X)
		for _, s := range e.series {
			if i >= len(s.points) {
				b.WriteString(" – |")
				continue
			}
			fmt.Fprintf(b, " %.2f |", s.points[i].Y)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "\nin %s\n", e.y)
}
