package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/recording"
	"fairway/internal/wire"
	"fairway/test/files"
)

// everyRule has jobs with outputs chosen by content, a split by records, a
// merge and a file that is rewritten.
const everyRule = `
workflow: every-rule
inputs:
  texts: {files: "in/{name}.txt", as: "in/{name}.txt"}
  start: {files: calibration}
steps:
  parts:
    each: "in/{name}.txt"
    writes: "parts/{name}.{part}"
    command: "cut $in"
  calibrate:
    each: "parts/{name}.{part}"
    rewrites: calibration
    command: "learn $in"
  pieces:
    each: "in/{name}.txt"
    reads: calibration
    split: {records: 2, of: lines}
    writes: "pieces/{name}.{chunk}"
    command: "piece $in"
  total:
    merge: "pieces/{name}.{chunk}"
    files: 3
    retry: {attempts: 2, backoff: 1ms}
    writes: "total.{merge}"
    command: "add $in"
`

func everyRuleScript(a *wire.Assignment, read func(string) string) (map[string]string, int) {
	text := ""
	for _, in := range a.GetInputs() {
		text += read(in.GetFile().GetLfn())
	}
	lfn := a.GetOutputs()[0].GetLfn()
	switch {
	case strings.HasPrefix(lfn, "parts/"):
		name := strings.TrimSuffix(strings.TrimPrefix(lfn, "parts/"), ".*")
		outputs := map[string]string{}
		for _, word := range strings.Fields(text) {
			outputs["parts/"+name+"."+word] = word
		}
		return outputs, 0
	case strings.HasSuffix(lfn, "*"): // counts the records of a file
		return map[string]string{strings.TrimSuffix(lfn, "*") + "5": ""}, 0
	}
	return map[string]string{lfn: text}, 0
}

// What a server decides, also after its store failed and after it was started
// again, is decided again by a replay of its inputs.
func TestReplayOfARecordedServer(t *testing.T) {
	root := files.Folder(t, map[string]string{"in/a.txt": "one two", "in/b.txt": "three four five", "calibration": "0"})
	path := filepath.Join(root, "run.jsonl")
	noTotal := func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		if a.GetStep() == "total" {
			return nil, 1
		}
		return everyRuleScript(a, read)
	}
	for i, script := range []script{noTotal, everyRuleScript} {
		r := newRun(t, root, everyRule, script)
		r.config.Recording, r.config.KeepGoing = path, true
		outcome, err := r.runOn(func(n int64) bool { return n%5 == 3 })
		if err != nil {
			t.Fatal(err)
		}
		if outcome.Succeeded != (i == 1) {
			t.Errorf("server %d: %+v", i+1, outcome)
		}
	}
	replayed := replayFile(t, path)
	if replayed.Servers != 2 || replayed.Loads < 4 || replayed.Flow < 15 || replayed.Dispatch < 50 {
		t.Errorf("the recording has too little in it: %+v", replayed)
	}
}

func replayFile(t *testing.T, path string) recording.Replayed {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	replayed, err := recording.Replay(file)
	if err != nil {
		t.Fatal(err)
	}
	return replayed
}
