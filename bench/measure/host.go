package measure

import (
	"fmt"
	"os"
)

// Host is a benchmark in the place of a test, for packages that start real servers for
// tests. Where a test would fail or be skipped, the benchmark ends.
type Host struct {
	name     string
	base     string // where TempDir makes folders
	failed   bool
	cleanups []func()
}

// NewHost returns a host whose folders are made in base; empty: where the system keeps
// temporary files. The caller calls End.
func NewHost(name, base string) *Host { return &Host{name: name, base: base} }

// End calls what Cleanup was given, the last first.
func (h *Host) End() {
	for len(h.cleanups) > 0 {
		last := len(h.cleanups) - 1
		f := h.cleanups[last]
		h.cleanups = h.cleanups[:last]
		f()
	}
}

// Name is the name of the benchmark.
func (h *Host) Name() string { return h.name }

// Failed reports whether the benchmark ends because something is wrong.
func (h *Host) Failed() bool { return h.failed }

// Cleanup has f called by End.
func (h *Host) Cleanup(f func()) { h.cleanups = append(h.cleanups, f) }

// Setenv sets a variable for the rest of the program.
func (h *Host) Setenv(key, value string) { ExitOn(os.Setenv(key, value)) }

// TempDir makes a folder that End removes.
func (h *Host) TempDir() string {
	folder, err := os.MkdirTemp(h.base, "fairway-bench")
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { _ = os.RemoveAll(folder) })
	return folder
}

// Logf prints to standard error.
func (h *Host) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Fatal ends the program with an error.
func (h *Host) Fatal(args ...any) {
	h.failed = true
	h.End()
	ExitOn(fmt.Errorf("%s", fmt.Sprint(args...)))
}

// Fatalf ends the program with an error.
func (h *Host) Fatalf(format string, args ...any) { h.Fatal(fmt.Sprintf(format, args...)) }

// Skip is Fatal: what cannot be measured is no result.
func (h *Host) Skip(args ...any) { h.Fatal(args...) }

// Skipf is Fatalf.
func (h *Host) Skipf(format string, args ...any) { h.Fatalf(format, args...) }
