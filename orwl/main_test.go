package orwl

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// seeded returns a random source and logs its seed; FAIRWAY_SEED repeats one.
func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	if s := os.Getenv("FAIRWAY_SEED"); s != "" {
		var err error
		if seed, err = strconv.ParseUint(s, 10, 64); err != nil {
			t.Fatalf("FAIRWAY_SEED: %v", err)
		}
	}
	t.Logf("FAIRWAY_SEED=%d", seed)
	return rand.New(rand.NewPCG(seed, 0))
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

// granted says whether the request is granted; a refusal ends the test.
func granted(t testing.TB, l interface{ Test() (bool, error) }) bool {
	t.Helper()
	ok, err := l.Test()
	must(t, err)
	return ok
}

var background = context.Background()
