package sites_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/lib/sched"
)

// burst has eight jobs of which none ends before four run, on pilots for one job each.
const burst = `workflow: burst
inputs:
  texts: {watch: 'in/{n}.txt', as: 'in/{n}', close: manual}
steps:
  work:
    each: in/{n}
    writes: out/{n}
    needs: {cpus: 1}
    command: touch ${marks}/$n; while [ $(ls ${marks} | wc -l) -lt 4 ]; do sleep 0.1; done; cp "$in" "$out"
`

// After a burst the pilots go that min_pilots and min_idle_pilots do not keep, and the others stay for
// what comes.
func slurmBurst(t *testing.T) {
	t.Helper()
	marks := t.TempDir()
	limits := "max_pilots: 4\n    min_pilots: 2\n    min_idle_pilots: 1\n    idle_timeout: 3s"
	sites := strings.NewReplacer("max_pilots: 3", limits, "cpus: 2", "cpus: 1").Replace(slurmSite)
	folder := folderWith(t, strings.ReplaceAll(burst, "${marks}", marks), sites)
	out, ended := begin(t, folder, filepath.Join(folder, "workflow.yaml"))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for most := 0; ; {
		running := strings.Count(queue(t), " RUNNING")
		most = max(most, running)
		begun, _ := os.ReadDir(marks)
		if most > 4 || most == 4 && running < 2 {
			t.Fatalf("%d pilots, after %d\n%s", running, most, pilotLogs(folder))
		}
		if len(begun) == 8 && most == 4 && running == 2 {
			break
		}
		if sched.Default().Sleep(ctx, 100*time.Millisecond) != nil {
			t.Fatalf("%d pilots, after %d, for %d jobs\n%s", running, most, len(begun), pilotLogs(folder))
		}
	}
	if said := run(t, folder, "pilots"); strings.Count(said, "idle") < 2 {
		t.Errorf("two pilots should be idle:\n%s", said)
	}
	run(t, folder, "close", "texts")
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if made := results(t, folder); len(made) != 8 {
		t.Errorf("%d results, not 8", len(made))
	}
}
