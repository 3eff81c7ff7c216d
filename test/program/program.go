// Package program builds fairway for tests that start it as a person does, as a
// process that they can kill. It is built without race detector, with which
// thousands of jobs would take minutes.
package program

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"fairway/internal/disk"
)

// Build puts fairway into a folder and returns its path. All packages of tests share one link:
// they build one after another at one place, where go build leaves a program alone that is as
// its sources are.
func Build(folder string) (string, error) { return build(folder, "fairway") }

// BuildToFindRaces is Build with the race detector in the program, for tests that have minutes.
func BuildToFindRaces(folder string) (string, error) { return build(folder, "fairway-race", "-race") }

func build(folder, name string, flags ...string) (string, error) {
	_, source, _, _ := runtime.Caller(0)
	place := filepath.Join(filepath.Dir(source), "../../bin/test")
	if err := os.MkdirAll(place, 0o755); err != nil {
		return "", fmt.Errorf("building fairway: %w", err)
	}
	lock, err := os.Create(filepath.Join(place, "lock"))
	if err != nil {
		return "", fmt.Errorf("building fairway: %w", err)
	}
	defer func() { _ = lock.Close() }()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("waiting for another build of fairway: %w", err)
	}
	shared, path := filepath.Join(place, name), filepath.Join(folder, name)
	words := slices.Concat([]string{"build", "-o", shared}, flags, []string{"fairway/cmd/fairway"})
	if out, err := exec.Command("go", words...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("building fairway: %w\n%s", err, out)
	}
	built, err := os.Open(shared)
	if err != nil {
		return "", fmt.Errorf("building fairway: %w", err)
	}
	defer func() { _ = built.Close() }()
	return path, disk.CopyTo(context.Background(), built, path, 0o755)
}

// Main is for TestMain: it builds fairway, stores where it is, runs the tests of
// the package, and ends the process.
func Main(m *testing.M, fairway *string) {
	folder, err := os.MkdirTemp("", "fairway")
	if err == nil {
		*fairway, err = Build(folder)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(folder)
	os.Exit(code)
}
