package sim

import (
	"context"
	"strings"
	"testing"
)

// The division that experiments of the paper take has the sums that the paper
// gives.
func TestTier0HasTheSumsOfThePaper(t *testing.T) {
	w := workIn(t, strings.Replace(small, "W1", "Tier0", 1))
	var read, written int64
	for _, f := range w.files {
		read += f.size
	}
	for _, j := range w.jobs {
		for _, o := range j.job.Writes {
			written += w.sizes[o.LFN]
		}
	}
	if len(w.jobs) != 172 || read/1e7 != 8340 && read/1e7 != 8341 || (written+5e8)/1e9 != 112 {
		t.Errorf("%d jobs read %d bytes and write %d, not 172, 83.41 GB and 112 GB", len(w.jobs), read, written)
	}
}

// A file that several jobs depend on is read once by all together: 83.41 GB of the detector, 56 GB by
// the merges, and their 50 GB by the next steps.
func TestTier0JobsReadPartsOfTheirFiles(t *testing.T) {
	text := strings.Replace(small, "W1, file_size: 1MB, run: 10s", "Tier0, run: 10s, accesses: 10", 1)
	res, err := Sweep(context.Background(), mustParse(t, text+"cache: {share: none, inputs: false}\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if read := res.Rows[0].Value("read_gb"); read < 189 || read > 190 {
		t.Errorf("%.1f GB are read, not 83.41 + 56 + 50", read)
	}
}

func TestTier0MergesWhatIsLeft(t *testing.T) {
	w := workIn(t, strings.Replace(small, "W1,", "Tier0, tier0: {input: 7kB, steps: [{name: a, jobs: 7, writes: 70B, "+
		"merge: 3}]},", 1))
	if len(w.jobs) != 10 {
		t.Fatalf("%d jobs, not 7 and 3 merges", len(w.jobs))
	}
	last := w.jobs[9].job
	if len(last.Reads) != 1 || w.sizes[last.Writes[0].LFN] != 10 {
		t.Errorf("the last merge reads %v and writes %d bytes", last.Reads, w.sizes[last.Writes[0].LFN])
	}
}

func workIn(t *testing.T, text string) *jobGraph {
	t.Helper()
	w, err := workOf(&mustParse(t, text).Points[0].Experiment)
	if err != nil {
		t.Fatal(err)
	}
	return w
}
