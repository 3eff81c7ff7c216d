// Package seed gives random tests a seed that a person can repeat: it prints the seed of
// every test, and takes the one in the environment variable FAIRWAY_SEED.
package seed

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// Variable is the environment variable that holds the seed to repeat.
const Variable = "FAIRWAY_SEED"

// Of returns the seed of a test and prints it; the test ends if the variable holds no
// number.
func Of(t testing.TB) uint64 {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv(Variable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("%s: %v", Variable, err)
		}
	}
	t.Logf("%s=%d", Variable, seed)
	return seed
}

// Source returns a random source from the seed of a test. It is for one goroutine.
func Source(t testing.TB) *rand.Rand {
	t.Helper()
	return rand.New(rand.NewPCG(Of(t), 0))
}
