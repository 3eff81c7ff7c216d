package main

import "testing"

func TestBlocksAreWideButNotFlat(t *testing.T) {
	for count, want := range map[int][2]int{1: {1, 1}, 2: {2, 1}, 4: {4, 1}, 8: {4, 2}, 16: {8, 2}, 32: {8, 4}} {
		if rows, columns := blocks(count, min(count, 2)); rows != want[0] || columns != want[1] {
			t.Errorf("%d blocks: %d x %d and not %v", count, rows, columns, want)
		}
	}
}

func TestCoreTicks(t *testing.T) {
	for line, want := range map[string][2]int{
		"cpu1 10 1 20 400 5 2 3 4 0 0": {1, 40},
		"cpu  10 1 20 400 5 2 3 4 0 0": {-1, 0},
		"ctxt 12345":                   {-1, 0},
	} {
		if core, ticks := coreTicks(line); core != want[0] || ticks != want[1] {
			t.Errorf("%q: core %d with %d ticks, and not %v", line, core, ticks, want)
		}
	}
}
