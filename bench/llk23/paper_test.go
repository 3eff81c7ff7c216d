package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gonum.org/v1/plot/plotter"
)

func drawn(name string, points ...float64) series {
	s := series{name: name}
	for i, y := range points {
		s.points = append(s.points, plotter.XY{X: float64(int(32) << i), Y: y})
	}
	return s
}

// What the text says of a figure is what its points say, whatever they are.
func TestConclusionsComeFromThePoints(t *testing.T) {
	e := experiment{series: []series{
		drawn("4 blocks", 4, 2), drawn("16 blocks", 3, 1), drawn("4 blocks, theirs", 8, 9), drawn("16 blocks, theirs", 9, 2),
	}}
	for text, want := range map[string][]string{
		elementsHere(e): {
			"falls in 3 of 4 lines", "4 blocks: 2.00 ns", "the others 1.00 to 1.00", "4 blocks, theirs: 9.00 ns",
			"Theirs takes 2.0 to 4.5 times",
		},
		computingHere(e): {
			"4 blocks: from 4.0 to 2.0 %", "4 blocks, theirs: from 8.0 to 9.0 %", "16 blocks 8 %", "16 blocks, theirs 16 %",
		},
		hostsHere([]hostRow{
			{Hosts: 1, Scheme: schemeOurs, OneHost: 1},
			{Hosts: 2, Scheme: schemeOurs, OneHost: 1.2}, {Hosts: 8, Scheme: schemeOurs, OneHost: 3},
			{Hosts: 1, Scheme: schemePaper, OneHost: 1},
			{Hosts: 4, Scheme: schemePaper, OneHost: 2},
		}): {"ours takes 1.2 to 3.0 times", "theirs 2.0 to 2.0 times"},
	} {
		for _, w := range want {
			if !strings.Contains(text, w) {
				t.Errorf("%q does not say %q", text, w)
			}
		}
	}
}

// A line may be shorter than the others, where larger blocks do not fit into memory.
func TestLinesOfDifferentLengths(t *testing.T) {
	e := experiment{
		file: "f.svg", title: "T", x: "x", y: "y", here: func(experiment) string { return "so" },
		series: []series{drawn("4 blocks", 4, 2), drawn("100 blocks", 3)},
	}
	folder := t.TempDir()
	var text strings.Builder
	e.write(&text)
	if !strings.Contains(text.String(), "| 64 | 2.00 | – |") || !strings.Contains(text.String(), "Here: so") {
		t.Error(text.String())
	}
	if err := e.plot(folder); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, "f.svg")); err != nil {
		t.Error(err)
	}
}

// More nodes have more blocks of the same size.
func TestBlocksGrowWithNodes(t *testing.T) {
	for nodes, form := range map[int][2]int{1: {4, 4}, 2: {8, 4}, 4: {8, 8}} {
		c := squares(form[0], form[1], 500, nodes, 1, "memory")
		if n := (c.N - 2) * (c.N - 2) / c.Rows / c.Columns; n < 249_000 || n > 251_000 {
			t.Errorf("%d nodes: blocks of %d elements", nodes, n)
		}
	}
}
