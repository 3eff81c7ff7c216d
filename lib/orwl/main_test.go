package orwl

import (
	"context"
	"flag"
	"os"
	"strconv"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if soaks() {
		if err := flag.Set("rapid.checks", strconv.Itoa(rounds(100))); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// soakFactor is how many times as long a random test runs in a soak.
const soakFactor = 30

func soaks() bool { return os.Getenv("FAIRWAY_SOAK") != "" }

// rounds returns how often a random test does what it does n times usually.
func rounds(n int) int {
	if soaks() {
		return soakFactor * n
	}
	return n
}

func newLocation(t testing.TB, name string, size int, options ...Option) *Location {
	t.Helper()
	l, err := New(name, size, options...)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// granted reports whether the request is granted; a refusal ends the test.
func granted(t testing.TB, l interface{ Test() (bool, error) }) bool {
	t.Helper()
	ok, err := l.Test()
	must(t, err)
	return ok
}

var background = context.Background()
