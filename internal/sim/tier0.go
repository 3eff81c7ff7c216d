package sim

import (
	"fmt"
	"math/rand/v2"
)

// The Tier0 workflow of paper 3 (sections III and V) has 172 jobs that read
// 83.41 GB and write 112 GB, in three steps that end in merges. How the jobs
// and bytes are divided among the steps the paper does not say; here they
// follow its two rules: every job writes less than it reads, and a merge
// writes what it reads.
const (
	tier0Input = 83_410_000_000
	repackers  = 60
	recos      = 60
	alcas      = 36
	mergeOf    = 10 // Repacker or PromptReco files in one merge
	mergeAlca  = 9

	repacked = 32e9 // bytes of all Repacker jobs; their merges write as many
	recoed   = 18e9
	alcaed   = 6e9 // 2·(32+18+6) = 112
)

func tier0(s WorkflowSpec, r *rand.Rand) *workflow {
	w := newWorkflow("Tier0")
	var raw []string
	for i := range repackers {
		lfn := fmt.Sprintf("raw/%03d", i)
		w.exists(lfn, int64(tier0Input)/repackers)
		raw = append(raw, lfn)
	}
	repack := w.processed("repack", s, r, raw, repackers, repacked)
	merged := w.merged("repack-merge", s, r, repack, mergeOf)
	reco := w.processed("reco", s, r, merged, recos, recoed)
	recoMerged := w.merged("reco-merge", s, r, reco, mergeOf)
	alca := w.processed("alca", s, r, recoMerged, alcas, alcaed)
	w.merged("alca-merge", s, r, alca, mergeAlca)
	return w
}

// processed adds n jobs over the files given, which they share evenly, with
// bytes of output in all.
func (w *workflow) processed(step string, s WorkflowSpec, r *rand.Rand, files []string, n int, bytes float64) []string {
	var out []string
	for i := range n {
		f := extant{fmt.Sprintf("%s/%03d", step, i), int64(bytes) / int64(n)}
		w.add(step, fmt.Sprintf("%s-%03d", step, i), s.Run.draw(r), []string{files[i*len(files)/n]}, f)
		out = append(out, f.lfn)
	}
	return out
}

// merged adds jobs that each join of files into one. A merge copies and does
// not compute: it takes a tenth of a job's run time.
func (w *workflow) merged(step string, s WorkflowSpec, r *rand.Rand, files []string, of int) []string {
	var out []string
	for i := 0; i*of < len(files); i++ {
		reads := files[i*of : (i+1)*of]
		f := extant{fmt.Sprintf("%s/%03d", step, i), 0}
		for _, lfn := range reads {
			f.size += w.sizes[lfn]
		}
		w.add(step, fmt.Sprintf("%s-%03d", step, i), s.Run.draw(r)/10, reads, f)
		out = append(out, f.lfn)
	}
	return out
}
