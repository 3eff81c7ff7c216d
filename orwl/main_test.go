package orwl

import (
	"context"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

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
