package main

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is published counts only if each job has run, and once.
func TestExecutionsMissingAndRepeated(t *testing.T) {
	p := program{times: filepath.Join(t.TempDir(), "times")}
	ran := func(records ...[3]int64) {
		var text []byte
		for _, r := range records {
			for _, word := range r {
				text = binary.NativeEndian.AppendUint64(text, uint64(word))
			}
		}
		if err := os.WriteFile(p.times, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ran([3]int64{2, 30, 40}, [3]int64{1, 10, 20})
	for _, jobs := range []int{1, 3} {
		if all, err := p.executions(jobs); err == nil {
			t.Errorf("%v are %d jobs", all, jobs)
		}
	}
	ran([3]int64{1, 10, 20}, [3]int64{1, 30, 40})
	if all, err := p.executions(2); err == nil {
		t.Error("job 1 counts twice:", all)
	}
	const ms = int64(time.Millisecond)
	ran([3]int64{3, 9 * ms, 10 * ms}, [3]int64{1, 0, ms}, [3]int64{2, 3 * ms, 4 * ms})
	all, err := p.executions(3)
	if err != nil {
		t.Fatal(err)
	}
	if got := lastEnd(all, time.Millisecond); got != 0.009 {
		t.Errorf("the last ended after %v s", got)
	}
	if got := gap(all); got != 5 { // of 2 and 5, package measure takes the upper
		t.Errorf("%v ms from one to the next", got)
	}
}
