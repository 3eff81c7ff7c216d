package scripts

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository is one with a Makefile of its own, a first commit and the scripts beside this test.
func repository(t *testing.T, makefile string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "scripts"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"test-targets.sh", "get.sh"} {
		script, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "scripts", name), script, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	said, err := in(folder, "git", "init", "-q")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	commit(t, folder, makefile)
	return folder
}

// commit replaces the Makefile, and with it the tree.
func commit(t *testing.T, folder, makefile string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, "Makefile"), []byte(makefile), 0o644); err != nil {
		t.Fatal(err)
	}
	said, err := in(folder, "sh", "-c", "git add -A && git -c user.name=a -c user.email=a@example.org commit -q -m a")
	if err != nil {
		t.Fatalf("%v: %s", err, said)
	}
}

// in runs a command as nobody's child: what `make` has told the process of the tests counts for no other `make`.
func in(folder string, words ...string) (said string, err error) {
	c := exec.Command(words[0], words[1:]...)
	c.Dir = folder
	for _, pair := range os.Environ() {
		if name, _, _ := strings.Cut(pair, "="); !strings.HasPrefix(name, "MAKE") && name != "MFLAGS" {
			c.Env = append(c.Env, pair)
		}
	}
	c.Env = append(c.Env, "LIMIT=1")
	out, err := c.CombinedOutput()
	return string(out), err
}

// table is what the script says of each target, at its end.
func table(t *testing.T, said string) map[string]string {
	t.Helper()
	results := make(map[string]string)
	_, rows, found := strings.Cut(said, "TARGET")
	if !found {
		t.Fatalf("there is no table:\n%s", said)
	}
	for row := range strings.Lines(rows) {
		if words := strings.Fields(row); len(words) == 3 && strings.HasPrefix(words[0], "test-") {
			results[words[0]] = words[1]
		}
	}
	return results
}

// All targets run, whatever the others do; one that fails runs once more; a table says how each ended.
func TestAllTargetsRun(t *testing.T) {
	folder := repository(t, `
test-a:
	exit 3
test-b:
	test -e tried || { touch tried; exit 1; }
test-c:
	mkfifo never && read word <never
test-d: get
	exit 1
get:
	scripts/get.sh false
test-e:
	echo it is well
test-tools:
	exit 1
test-all:
	exit 1
test-suites: test-a
	exit 1
`)
	said, err := in(folder, "scripts/test-targets.sh", "all")
	if err == nil {
		t.Error("the exit code is 0")
	}
	want := map[string]string{
		"test-a": "failed-then-failed", "test-b": "failed-then-ok", "test-c": "too-long-then-failed",
		"test-d": "skipped", "test-e": "ok",
	}
	if got := table(t, said); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the table says %v, want %v", got, want)
	}
	for _, part := range []string{
		"to repeat it: make test-a", "it cannot be had here: false", "test-d: skipped, it cannot be had here",
	} {
		if !strings.Contains(said, part) {
			t.Errorf("it does not say %q:\n%s", part, said)
		}
	}
}

// What fails once, what is skipped and what there was no time for leave the exit code at 0.
func TestOnlyASecondFailureCounts(t *testing.T) {
	folder := repository(t, `
test-b:
	test -e tried || { touch tried; exit 1; }
`)
	said, err := in(folder, "scripts/test-targets.sh", "share", "100", "100")
	if got := table(t, said); err != nil || got["test-b"] != "failed-then-ok" {
		t.Errorf("one that fails once: %v, %v", got, err)
	}
	for _, c := range []struct{ before, end, want string }{{"0", "100", "not-begun"}, {"100", "0", "no-time"}} {
		said, err := in(folder, "scripts/test-targets.sh", "share", c.before, c.end)
		if got := table(t, said); err != nil || got["test-b"] != c.want {
			t.Errorf("share %s %s: %v, %v, want %s", c.before, c.end, got, err, c.want)
		}
	}
	commit(t, folder, "test-b:\n\texit 1\n")
	if said, err := in(folder, "scripts/test-targets.sh", "share", "100", "100"); err == nil {
		t.Errorf("one that fails twice:\n%s", said)
	}
}

// A tree always has the same share, others have others, and in time every target is in one, and is its first.
func TestTheTreeChoosesTheShare(t *testing.T) {
	const targets = 5
	var makefile strings.Builder
	for i := range targets {
		fmt.Fprintf(&makefile, "test-%c:\n", 'a'+i)
	}
	folder := repository(t, makefile.String())
	first := make(map[string]bool)
	for n := range 60 { // the same ones in each run of the test
		said, err := in(folder, "scripts/test-targets.sh", "list", "share")
		again, _ := in(folder, "scripts/test-targets.sh", "list", "share")
		share := strings.Fields(said)
		if err != nil || said != again || len(share) != 2 || share[0] == share[1] {
			t.Fatalf("%v: the share is %q, then %q", err, said, again)
		}
		first[share[0]] = true
		if len(first) == targets {
			return
		}
		commit(t, folder, fmt.Sprintf("%s# %d\n", makefile.String(), n))
	}
	t.Errorf("after 60 trees these were first: %v", first)
}
