package flow

import (
	"fmt"
	"testing"
)

const lambda = `
workflow: lambda
parameters:
  reads: /data
  pairs: 1000
inputs:
  mates:
    files: ${reads}/reads_{mate}.fq.gz
    as: raw/{mate}.fq.gz
  genome:
    files: /data/lambda_virus.fa.gz
steps:
  index:
    reads: {genome: lambda_virus.fa.gz}
    writes: {index: index.tar}
    command: |
      bowtie2-build "$genome" x && tar cf "$index" x*
  split:
    each: raw/{mate}.fq.gz
    writes: parts/{part}.{mate}.fq
    command: zcat "$in" | split -l $((4 * pairs))
  align:
    each: [parts/{part}.1.fq, parts/{part}.2.fq]
    reads: {index: index.tar}
    writes: {bam: bam/{part}.bam}
    needs: {cpus: 1, memory: 500MB, time: 10m}
    command: bowtie2 "$in" > "$bam"
  merge:
    merge: bam/{part}.bam
    writes: lambda.bam
    command: samtools merge -f "$out" $in
`

func TestLambda(t *testing.T) {
	x := newWorld(t, lambda, nil)
	x.produce = func(j NewJob, pattern string) []string {
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
