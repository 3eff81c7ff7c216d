package server

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"fairway/test/files"
)

// Small inputs that were touched, replaced by a copy or checked out anew run
// nothing again; what they hold counts.
func TestOnlyContentsOfSmallInputsCount(t *testing.T) {
	root := files.Folder(t, threeTexts)
	mustRun(t, root, 4)
	input := filepath.Join(root, "in/b.txt")
	now := time.Now().Add(time.Minute)
	if err := os.Chtimes(input, now, now); err != nil {
		t.Fatal(err)
	}
	mustRun(t, root, 0)
	text := files.Read(t, input)
	if err := os.Remove(input); err != nil {
		t.Fatal(err)
	}
	files.Write(t, input, text)
	mustRun(t, root, 0)
	copied := filepath.Join(t.TempDir(), "copied")
	if out, err := exec.Command("cp", "-r", root, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mustRun(t, copied, 0)
}

// Neither the size nor the time of a small input hides that it changed.
func TestContentsCountWhateverTheTime(t *testing.T) {
	root := files.Folder(t, threeTexts)
	input := filepath.Join(root, "in/b.txt")
	when := time.Unix(1_700_000_000, 0)
	if err := os.Chtimes(input, when, when); err != nil {
		t.Fatal(err)
	}
	mustRun(t, root, 4)
	file, err := os.OpenFile(input, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString("owt "); err != nil || file.Close() != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(input, when, when); err != nil {
		t.Fatal(err)
	}
	r := newRun(t, root, twoSteps, twoStepsScript)
	r.mustSucceed()
	if r.pilots.total() != 2 || r.result("joined.txt") != "ONE OWT THREE " {
		t.Errorf("executed %v, the result is %q", r.pilots.executed, r.result("joined.txt"))
	}
}
