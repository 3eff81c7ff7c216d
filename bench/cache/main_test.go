package main

import (
	"os"
	"os/exec"
	"testing"

	"fairway/bench/measure"
	"fairway/internal/sim/paper"
)

// The short form runs W1 at d3f3 without a cache and with C3, and what fails is what fails
// in the model.
func TestQuick(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("network namespaces need root")
	}
	for _, program := range []string{"ip", "tc", "nft", "nginx"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	plan, err := paper.Hosts()
	if err != nil {
		t.Fatal(err)
	}
	shorten(plan)
	host := measure.NewHost("cache", "/var/tmp")
	defer host.End()
	rows, err := measureAll(t.Context(), host, plan, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 {
		t.Fatalf("%d rows", len(rows))
	}
	none, cached := rows[0], rows[1]
	if none.HitRatio != 0 || cached.HitRatio < 0.9 || cached.ElementBytes >= none.ElementBytes {
		t.Errorf("without a cache %+v, with one %+v", none, cached)
	}
}

// The names of stored files, and of those that are not files of jobs.
func TestNamesOfStoredFiles(t *testing.T) {
	for path, want := range map[string]string{
		"/store/fairway-ID/step0/003.0.v1.a42":                "step0/003.0",
		"http://10.77.0.2:1/store/fairway-ID/step1/003.v2.a4": "step1/003",
		"/store/fairway-ID/step0/.unfinished-ABC":             "",
		"/store/fairway-ID/.fairway-mark":                     "",
	} {
		if got := lfnOf(path); got != want {
			t.Errorf("%s is %q, want %q", path, got, want)
		}
	}
}
