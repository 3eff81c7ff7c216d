package main

import "testing"

func TestRing(t *testing.T) {
	for _, tasks := range []int{2, 5} {
		if err := run(tasks, 50, 10); err != nil {
			t.Fatal(err)
		}
	}
}
