package main

import "testing"

func TestBlocksAreWideButNotFlat(t *testing.T) {
	for count, want := range map[int][2]int{1: {1, 1}, 2: {2, 1}, 4: {4, 1}, 8: {4, 2}, 16: {8, 2}, 32: {8, 4}} {
		if rows, columns := blocks(count, min(count, 2)); rows != want[0] || columns != want[1] {
			t.Errorf("%d blocks: %d x %d and not %v", count, rows, columns, want)
		}
	}
}
