package flow

import (
	"fmt"
	"testing"

	"fairway/internal/flow/workflow"
)

func TestLambda(t *testing.T) {
	x := newWorld(t, lambda, nil)
	x.produce = func(j workflow.NewJob, pattern string) []string {
		var out []string
		for _, part := range []string{"ac", "aa", "ab"} {
			out = append(out, fmt.Sprintf("parts/%s.%s.fq", part, j.Command.Environment["mate"]))
		}
		return out
	}
	x.arrive("mates", "raw/1.fq.gz", "raw/2.fq.gz")
	x.close("mates")
	x.wantSubmitted("split/1", "split/2")
	x.arrive("genome", "lambda_virus.fa.gz")
	x.close("genome")
	x.wantSubmitted("index")
	x.commit("split/2")
	x.wantSubmitted()
	x.commit("split/1")
	x.wantSubmitted("align/aa", "align/ab", "align/ac", "merge")
	if !x.finished {
		t.Errorf("not finished: %v", x)
	}
	if in := x.jobs["merge"].Command.Environment["in"]; in != "bam/aa.bam bam/ab.bam bam/ac.bam" {
		t.Errorf("merge takes %s", in)
	}
	x.commitAll(first)
}
