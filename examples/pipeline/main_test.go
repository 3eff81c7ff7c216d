package main

import (
	"os"
	"testing"
)

// TestMain lets this binary be the reader processes too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "-join" {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestPipeline(t *testing.T) {
	for _, processes := range []bool{false, true} {
		if err := run(2, 20, processes); err != nil {
			t.Fatal(err)
		}
	}
}
