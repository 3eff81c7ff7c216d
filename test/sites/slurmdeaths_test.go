package sites_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/batch/batchtest"
	"fairway/lib/sched"
	"fairway/lib/seed"
)

// begun is a beginning of a job, as it has told: its process, and that of its pilot.
type begun struct{ job, pilot int }

// begunAt reads the marks of a job, in the order in which it began.
func begunAt(mark string) (all []begun) {
	text, _ := os.ReadFile(mark)
	for line := range strings.Lines(string(text)) {
		var b begun
		if _, err := fmt.Sscan(line, &b.job, &b.pilot); err == nil {
			all = append(all, b)
		}
	}
	return all
}

// Nodes die at random, each with its slurmd, its pilot and its jobs. What ran there begins again, and
// nothing else: each job that begins more than once had its pilot killed each time, and of each
// pilot no more jobs begin again than it ran, and had run and not told yet. What it had told stays.
func TestSlurmNodesDieAtRandom(t *testing.T) {
	const jobs, deaths, processors = 8, 2, 2
	cluster := batchtest.Slurm(t, "SlurmdTimeout=6", "MessageTimeout=3")
	random := rand.New(rand.NewPCG(seed.Of(t), 0))
	marks := t.TempDir()
	workflow := strings.NewReplacer("${marks}", marks, "echo $$", "echo $$ $PPID").Replace(patient)
	folder := folderWith(t, workflow, slurmSite+"    lease: 3h\n")
	out, ended := begin(t, folder, filepath.Join(marks, "0"))
	killed := map[int]bool{}
	for range deaths {
		limit, cancel := context.WithTimeout(t.Context(), time.Duration(random.Int64N(int64(4*time.Second))))
		err, waited := sched.Receive(limit, sched.Default(), ended)
		cancel()
		if waited == nil {
			ended <- err
			break
		}
		var pilots []int
		for _, pid := range pidsOf(filepath.Join(folder, ".fairway")) {
			if stepAbove(pid) > 0 && !killed[pid] {
				pilots = append(pilots, pid)
			}
		}
		if len(pilots) == 0 {
			continue
		}
		if node := nodeOf(pilots[random.IntN(len(pilots))]); node != "" {
			_, dead := killNode(cluster, node, pilots)
			for pid := range dead {
				killed[pid] = true
			}
			t.Logf("%s died with %d processes", node, len(dead))
		}
	}
	if err := <-ended; err != nil {
		t.Fatalf("%v\n%s\n%s", err, out, pilotLogs(folder))
	}
	for name, text := range results(t, folder) {
		if want, _ := os.ReadFile(filepath.Join(folder, "in", filepath.Base(name)+".txt")); text != string(want) {
			t.Errorf("%s is not what was read", name)
		}
	}
	lost := map[int]int{} // jobs that began again, by the pilot that had begun them
	for i := range jobs {
		all := begunAt(filepath.Join(marks, fmt.Sprint(i)))
		for n, b := range all {
			switch last := n == len(all)-1; {
			case !last && !killed[b.pilot]:
				t.Errorf("job %d began again, and its pilot %d was not killed: %v", i, b.pilot, all)
			case last && killed[b.job]:
				t.Errorf("job %d was killed, and did not begin again: %v", i, all)
			case !last:
				lost[b.pilot]++
			}
		}
	}
	for pilot, n := range lost {
		if n > 2*processors {
			t.Errorf("%d jobs of the pilot %d began again, which has %d processors", n, pilot, processors)
		}
	}
	t.Logf("%d pilots and jobs were killed, and jobs of %d pilots began again: %v", len(killed), len(lost), lost)
}
