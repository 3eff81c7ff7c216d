package diskfull

import (
	"os"
	"strings"
	"testing"
)

// crowded has a job that fills the scratch which it shares, the last of it slowly, and one that goes
// on when that is over and its sandbox has been removed.
const crowded = `
workflow: crowded
steps:
  hog:
    writes: hog.dat
    needs: {disk: 10MB}
    retry: {attempts: 1}
    command: |
      trap 'touch MARKS/over; exit 1' TERM
      touch MARKS/begun
      head -c 34000000 /dev/zero >"$out"
      while head -c 100000 /dev/zero >>"$out"; do sleep 0.05; done
      touch MARKS/over
      exit 3
  neighbour:
    writes: neighbour.dat
    publish: true
    retry: {attempts: 1}
    command: |
      while ! [ -e MARKS/begun ] || ! [ -e MARKS/over ]; do sleep 0.05; done
      until head -c 1000000 /dev/zero >"$out"; do sleep 0.05; done
`

// A job that fills the scratch of a node ends before its neighbours do, and is told why.
func TestWhoFillsTheScratchEndsFirst(t *testing.T) {
	w := newWorkspace(t)
	w.disk(".fairway/sandbox", 40<<20)
	marks := t.TempDir()
	w.write("workflow.yaml", strings.ReplaceAll(crowded, "MARKS", marks))
	out, err := w.command("run", "--pilots", "2", "--keep-going", "--cache", "none").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "more than its `needs: disk` of 10.0 MB") {
		t.Errorf("%v:\n%s", err, out)
	}
	if _, err := os.Stat(w.path("results/neighbour.dat")); err != nil {
		t.Errorf("the neighbour: %v\n%s", err, out)
	}
}
