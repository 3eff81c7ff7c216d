// Package program builds fairway for tests that start it as a person does, as a
// process that they can kill. It is built without race detector, with which
// thousands of jobs would take minutes.
package program

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Build builds fairway into a folder and returns its path.
func Build(folder string) (string, error) {
	path := filepath.Join(folder, "fairway")
	if out, err := exec.Command("go", "build", "-o", path, "fairway/cmd/fairway").CombinedOutput(); err != nil {
		return "", fmt.Errorf("building fairway: %w\n%s", err, out)
	}
	return path, nil
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
