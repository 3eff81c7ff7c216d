package web

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"unicode/utf8"

	"fairway/internal/server/api"
	"fairway/internal/wire"
)

type drawing struct {
	Width, Height int
	Nodes         []node
	Edges         []string // paths
	TooMany       int      // steps, which are not drawn
}

type node struct {
	*wire.StepProgress
	X, Y, W, H int
	Label      string
	Link       string
	Kind       string // as stepKind
	Bar        []part
}

// part is a piece of a bar, in thousandths of its length.
type part struct {
	Kind string
	X, W float64
	N    int64
}

// stepsDrawn is the most steps that a picture shows; a table has all.
const stepsDrawn = 120

const (
	nodeWidth, nodeHeight = 190, 66
	gapAcross, gapDown    = 26, 44
	margin                = 8
	labelLength           = 22
)

// draw places steps in layers: each below all whose files it takes.
func draw(run api.Page, g *api.StepGraph) *drawing {
	if len(g.Steps) > stepsDrawn {
		return &drawing{TooMany: len(g.Steps)}
	}
	layers, place := order(g)
	d := &drawing{}
	for _, layer := range layers {
		d.Width = max(d.Width, len(layer)*(nodeWidth+gapAcross)-gapAcross+2*margin)
	}
	d.Height = max(0, len(layers)*(nodeHeight+gapDown)-gapDown+2*margin)
	at := make([]node, len(g.Steps))
	for y, layer := range layers {
		begin := (d.Width - len(layer)*(nodeWidth+gapAcross) + gapAcross) / 2
		for x, i := range layer {
			at[i] = newNode(run, g.Steps[i])
			at[i].X, at[i].Y = begin+x*(nodeWidth+gapAcross), margin+y*(nodeHeight+gapDown)
		}
	}
	for i, before := range g.Before {
		for _, b := range before {
			if place[b] < place[i] {
				d.Edges = append(d.Edges, edge(&at[b], &at[i]))
			}
		}
	}
	d.Nodes = at
	return d
}

func newNode(run api.Page, s *wire.StepProgress) node {
	label := s.GetStep()
	if utf8.RuneCountInString(label) > labelLength {
		label = string([]rune(label)[:labelLength-1]) + "…"
	}
	return node{
		StepProgress: s, W: nodeWidth, H: nodeHeight, Label: label, Kind: stepKind(s), Bar: bar(s),
		Link: runPath(run) + "/jobs?" + url.Values{"step": {s.GetStep()}}.Encode(),
	}
}

func edge(from, to *node) string {
	x1, y1, x2, y2 := from.X+from.W/2, from.Y+from.H, to.X+to.W/2, to.Y
	bend := max(gapDown/2, (y2-y1)/3)
	return fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1, y1+bend, x2, y2-bend, x2, y2)
}

// order puts steps into layers, and those of a layer below what they come from. Steps of a circle,
// which only samples can seem to have, come where they are met.
func order(g *api.StepGraph) (layers [][]int, place []int) {
	place = make([]int, len(g.Steps))
	state := make([]int, len(g.Steps)) // 1: being placed, 2: placed
	var visit func(i int) int
	visit = func(i int) int {
		if state[i] != 0 {
			return place[i]
		}
		state[i] = 1
		for _, b := range g.Before[i] {
			if state[b] != 1 {
				place[i] = max(place[i], visit(b)+1)
			}
		}
		state[i] = 2
		return place[i]
	}
	for i := range g.Steps {
		for at := visit(i); len(layers) <= at; {
			layers = append(layers, nil)
		}
		layers[place[i]] = append(layers[place[i]], i)
	}
	column := make([]float64, len(g.Steps))
	for range 4 {
		for _, layer := range layers {
			for x, i := range layer {
				column[i] = float64(x) - float64(len(layer)-1)/2
			}
			slices.SortStableFunc(layer, func(a, b int) int {
				return cmp.Compare(middle(g.Before[a], column, column[a]), middle(g.Before[b], column, column[b]))
			})
			for x, i := range layer {
				column[i] = float64(x) - float64(len(layer)-1)/2
			}
		}
	}
	return layers, place
}

// middle is where a step would stand best.
func middle(before []int, column []float64, otherwise float64) float64 {
	if len(before) == 0 {
		return otherwise
	}
	sum := 0.0
	for _, b := range before {
		sum += column[b]
	}
	return sum / float64(len(before))
}

// stepKind tells how a step stands: failed, running, ready, waiting, done or empty.
func stepKind(s *wire.StepProgress) string {
	switch {
	case s.GetFailed()+s.GetBlocked() > 0:
		return "failed"
	case s.GetRunning()+s.GetQueued() > 0:
		return "running"
	case s.GetReady() > 0:
		return "ready"
	case s.GetWaiting() > 0:
		return "waiting"
	case s.GetDone() > 0:
		return "done"
	}
	return "empty"
}

func bar(s *wire.StepProgress) (parts []part) {
	if s.GetTotal() == 0 {
		return nil
	}
	x := 0.0
	for _, p := range []part{
		{Kind: "done", N: s.GetDone()}, {Kind: "running", N: s.GetRunning()}, {Kind: "queued", N: s.GetQueued()},
		{Kind: "ready", N: s.GetReady()}, {Kind: "failed", N: s.GetFailed()}, {Kind: "blocked", N: s.GetBlocked()},
		{Kind: "cancelled", N: s.GetCancelled()}, {Kind: "waiting", N: s.GetWaiting()},
	} {
		if p.N > 0 {
			p.X, p.W = x, 1000*float64(p.N)/float64(s.GetTotal())
			x += p.W
			parts = append(parts, p)
		}
	}
	return parts
}
