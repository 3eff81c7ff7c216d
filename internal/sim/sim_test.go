package sim

import (
	"bytes"
	"context"
	"runtime"
	"testing"
)

func mustParse(t testing.TB, text string) *Plan {
	t.Helper()
	p, err := Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func csvOf(t *testing.T, p *Plan) string {
	t.Helper()
	res, err := Sweep(context.Background(), p, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := res.WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestSameSeedSameBytes(t *testing.T) {
	text := small + "repetitions: 3\naxes: {cache: {own: {cache.share: pilot}, shared: {cache.share: host}}}\ncache: {size: 5MB}\n"
	before := runtime.GOMAXPROCS(1)
	alone := csvOf(t, mustParse(t, text))
	runtime.GOMAXPROCS(4)
	beside := csvOf(t, mustParse(t, text))
	runtime.GOMAXPROCS(before)
	if alone != beside {
		t.Errorf("on one processor:\n%s\non four:\n%s", alone, beside)
	}
	other := mustParse(t, text)
	other.Reseed(testSeed(t) | 2)
	if csvOf(t, other) == alone {
		t.Error("another seed gave the same run")
	}
}

func TestPaperRuns(t *testing.T) {
	chapters, err := Paper(context.Background(), 2, 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range chapters {
		for _, claim := range c.Claims {
			t.Logf("%s held=%v %s: %s", claim.ID, claim.Held, claim.Claim, claim.Value)
		}
	}
}
