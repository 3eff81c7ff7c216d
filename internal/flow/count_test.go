package flow

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/internal/taskqueue"
)

// count runs the counting job of a file as a shell does, and gives what it says:
// the number as the name of a file, or what it printed to stderr.
func count(t *testing.T, split, name, content string) (string, error) {
	t.Helper()
	x := newWorld(t, "workflow: w\ninputs: {raw: {files: '{n}', as: '{n}'}}\nsteps:\n  a: {each: '{n}', split: "+split+
		", writes: 'a/{n}.{chunk}', command: x}\n", nil)
	file := filesOf(name)
	file[0].Unsized = true
	x.step(Arrived{Input: "raw", Files: file})
	j := x.jobs["a/"+name+"/records"]
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	command := exec.Command("/bin/sh", "-eu", "-c", j.Command.Shell)
	command.Dir = folder
	command.Env = []string{"PATH=" + os.Getenv("PATH")}
	for name, value := range j.Command.Environment {
		command.Env = append(command.Env, name+"="+value)
	}
	if said, err := command.CombinedOutput(); err != nil {
		return string(said), err
	}
	found, err := filepath.Glob(filepath.Join(folder, j.Command.Environment["out"], "*"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	return filepath.Base(found[0]), nil
}

func TestRecordsAreCounted(t *testing.T) {
	for _, c := range []struct{ split, name, content, want string }{
		{"{records: 1, of: lines}", "date=2024-01-01.csv", "1\n2\n3\n", "3"},
		{"{records: 1, of: lines}", "-f x y", "1\n2", "2"},
		{"{records: 1, of: lines}", "empty", "", "0"},
		{"{records: 1, of: fastq}", "NR=3", strings.Repeat("@\n", 8), "2"},
		{"{records: 1, of: fastq}", "x", strings.Repeat("@\n", 7), "x has a number of lines that is no multiple of four"},
		{"{records: 1, of: bytes=4}", "x", "12345", "5"}, // flow finds the parts
		{"{records: 1, count: 'echo 0020'}", "x", "", "0020"},
		{"{records: 1, count: 'echo 9223372036854775808'}", "x", "", "9223372036854775808"},
		{"{records: 1, count: 'printf \"\\t 7 \\n\"'}", "x", "", "7"},
		{"{records: 1, count: 'echo 1 2'}", "x", "", `one whole number, not "1 2"`},
		{"{records: 1, count: 'seq 12'}", "x", "", "one whole number"},
		{"{records: 1, count: 'echo 0x10'}", "x", "", `not "0x10"`},
		{"{records: 1, count: 'echo -1'}", "x", "", `not "-1"`},
		{"{records: 1, count: 'echo ../1'}", "x", "", `not "../1"`},
		{"{records: 1, count: 'echo \"*\"'}", "x", "", `not "*"`},
		{"{records: 1, count: 'true'}", "x", "", `not ""`},
	} {
		got, err := count(t, c.split, c.name, c.content)
		if err == nil && got != c.want || err != nil && !strings.Contains(got, c.want) {
			t.Errorf("%s of %s: %s, %v; want %s", c.split, c.name, got, err, c.want)
		}
	}
}

// A compressed file has line breaks by chance: three of them here, and none.
func TestCompressedRecordsAreNotCounted(t *testing.T) {
	for name, content := range map[string]string{
		"a.gz": "\x1f\x8b\x08\x00\n\n\n\n", "b.bz2": "BZh91AY&SY\n\n\n\n", "c.xz": "\xfd7zXZ\x00\n\n\n\n",
		"d.zst": "\x28\xb5\x2f\xfd\n\n\n\n",
	} {
		for _, of := range []string{"lines", "fastq"} {
			if got, err := count(t, "{records: 1, of: "+of+"}", name, content); err == nil ||
				!strings.Contains(got, name+" is compressed") {
				t.Errorf("%s of %s: %s, %v; want that it is compressed", of, name, got, err)
			}
		}
		if got, err := count(t, "{records: 1, of: bytes=4}", name, content); err != nil || got != fmt.Sprint(len(content)) {
			t.Errorf("bytes of %s: %s, %v", name, got, err)
		}
	}
	for _, text := range []string{"BZh5", "BZh is no archive\n", " (7zXZ", "\x1f"} {
		if got, err := count(t, "{records: 1, of: lines}", "text", text); err != nil || got != "1" {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

// What a counting job found is read as a decimal number, once, and no size or
// number of records is too large to be told.
func TestRecordsAreNumbers(t *testing.T) {
	for _, c := range []struct {
		split, printed, last string
		jobs                 int
	}{
		{"{records: 7, count: n}", "0020", "20", 3},
		{"{records: 9223372036854775807, count: n}", "9223372036854775807", "9223372036854775807", 1},
		{"{records: 9223372036854775806, count: n}", "9223372036854775807", "9223372036854775807", 2},
		{"{records: 9223372036854775807, of: lines}", "3", "3", 1},
		{"{records: 2, of: bytes=4}", "17", "5", 3},
		{"{records: 2, count: n}", "9223372036854775808", "too large", 0},
	} {
		x := newWorld(t, "workflow: w\ninputs: {raw: {files: '{n}', as: '{n}'}}\nsteps:\n  a: {each: '{n}', split: "+c.split+
			", writes: 'a/{n}.{chunk}', command: x}\n", nil)
		file := filesOf("f")
		file[0].Unsized = true
		x.step(Arrived{Input: "raw", Files: file})
		x.close("raw")
		x.produce = func(_ workflow.NewJob, pattern string) []string {
			return []string{strings.Replace(pattern, "*", c.printed, 1)}
		}
		x.commit("a/f/records")
		last := strings.Join(x.flow.Refused(), "\n")
		if c.jobs > 0 {
			last = x.jobs[fmt.Sprintf("a/f/%d", c.jobs)].Command.Environment["last"]
		}
		if len(x.jobs) != c.jobs+1 || !strings.Contains(last, c.last) || x.finished != (c.jobs > 0) {
			t.Errorf("%s of %s: %d jobs, last %s, finished %v", c.split, c.printed, len(x.jobs)-1, last, x.finished)
		}
	}
	x := newWorld(t, "workflow: w\ninputs: {raw: {files: '{n}', as: '{n}'}}\nsteps:\n  a: {each: '{n}', split: "+
		"{records: 1, of: bytes=9223372036854775807}, writes: 'a/{n}.{chunk}', command: x}\n", nil)
	huge := taskqueue.ExistingFile{LFN: "f", Size: math.MaxInt64}
	x.step(Arrived{Input: "raw", Files: []InputFile{{ExistingFile: huge}}})
	x.wantSubmitted("a/f/1")
}

// A merge by size never waits for a size that nobody tells.
func TestUnknownSizesAreNotMerged(t *testing.T) {
	x := newWorld(t, sized, nil)
	file := filesOf("raw/1")
	file[0].Unsized = true
	x.step(Arrived{Input: "raw", Files: file})
	if len(x.flow.Refused()) != 0 {
		t.Errorf("a copy has a size: %q", x.flow.Refused())
	}
	x = newWorld(t, "workflow: w\ninputs: {raw: {files: '{n}', as: '{n}'}}\nsteps:\n  a: {merge: '{n}', size: 1GB, "+
		"writes: 'a/{merge}', command: x}\n", nil)
	file = filesOf("f")
	file[0].Unsized = true
	x.step(Arrived{Input: "raw", Files: file})
	if refused := strings.Join(x.flow.Refused(), ""); !strings.Contains(refused, "does not tell how large it is") {
		t.Errorf("refused %q", refused)
	}
}
