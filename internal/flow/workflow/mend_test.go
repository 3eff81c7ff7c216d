package workflow

import (
	"errors"
	"strings"
	"testing"

	"fairway/internal/yamlfile"
)

func problemsIn(data []byte) yamlfile.Problems {
	_, err := Parse("t.yaml", data)
	problems, _ := errors.AsType[yamlfile.Problems](err)
	return problems
}

func mended(text string) (string, []yamlfile.Edit) {
	data, made := yamlfile.Mend([]byte(text), problemsIn)
	return string(data), made
}

// What has one certain answer is mended, and everything else stays as it is.
func TestMend(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"misspelt keys", "worklow: w\nsteps: # all\n  a: {write: x, comand: 'true', needs: {cpuss: 1}, " +
			"retry: {atempts: 2}}\n",
			"workflow: w\nsteps: # all\n  a: {writes: x, command: 'true', needs: {cpus: 1}, retry: {attempts: 2}}\n"},
		{"keys of other systems", "name: w\nrules:\n  a:\n    output:   \"x\"   # é: {y}\n    cmd: 'true'\n",
			"workflow: w\nsteps:\n  a:\n    writes:   \"x\"   # é: {y}\n    command: 'true'\n"},
		{"needs of other systems", frame("  a: {writes: x, command: 'true', needs: {threads: 2, mem: 2GB, " +
			"walltime: 10 Minutes}}\n"),
			frame("  a: {writes: x, command: 'true', needs: {cpus: 2, memory: 2GB, time: 10m}}\n")},
		{"amounts in units of other systems", frame("  a: {writes: x, command: 'true', needs: {mem: 2000, " +
			"runtime: 10, mem_mb: 5}}\n"),
			frame("  a: {writes: x, command: 'true', needs: {mem: 2000, runtime: 10, mem_mb: 5}}\n")},
		{"quotes", "workflow: w\ninputs:\n  raw: {files: 'raw/{n}'}\nsteps:\n  a:\n    each: '{n}'\n    about: @home\n" +
			"    writes: a/{n}\n    command: echo 'it is': $in > \"$out\"  # colon\n",
			"workflow: w\ninputs:\n  raw: {files: 'raw/{n}'}\nsteps:\n  a:\n    each: '{n}'\n    about: '@home'\n" +
				"    writes: a/{n}\n    command: 'echo ''it is'': $in > \"$out\"'  # colon\n"},
		{"stars", "workflow: w\ninputs:\n  one: {files: x, as: a/x}\n  raw:\n    files: *.txt # all\n" +
			"  more:\n    files: *R1\nsteps: {}\n",
			"workflow: w\ninputs:\n  one: {files: x, as: a/x}\n  raw:\n    files: '*.txt' # all\n" +
				"  more:\n    files: '*R1'\nsteps: {}\n"},
		{"flags", frame("  a: {each: 'raw/{n}', writes: 'a/{n}', command: 'true', publish: Yes}\n"),
			frame("  a: {each: 'raw/{n}', writes: 'a/{n}', command: 'true', publish: true}\n")},
		{"variables of commands", frame("  a:\n    each: raw/{n}\n    writes: a/{n}\n    command: |\n" +
			"      cat {input} \"{wildcards.n}_{n}\" > $output # {n}\n"),
			frame("  a:\n    each: raw/{n}\n    writes: a/{n}\n    command: |\n" +
				"      cat $in \"${n}_$n\" > $out # {n}\n")},
		{"two that are as close", frame("  a: {writes: x, command: 'true', fles: 2, siz: 3}\n"),
			frame("  a: {writes: x, command: 'true', files: 2, siz: 3}\n")},
		{"a key that is there", frame("  a: {writes: x, write: y, command: 'true'}\n"),
			frame("  a: {writes: x, write: y, command: 'true'}\n")},
		{"a value of another form", frame("  a: {writes: x, command: 'true'}\nparams: text\n"),
			frame("  a: {writes: x, command: 'true'}\nparams: text\n")},
		{"a mapping without braces", frame("  a: {writes: x, command: 'true'}\n  b:\n    needs: cpus: 2\n"),
			frame("  a: {writes: x, command: 'true'}\n  b:\n    needs: cpus: 2\n")},
		{"several answers", frame("  a: {each: 'row/{n}', writes: 'a/it', command: 'true'}\n"),
			frame("  a: {each: 'row/{n}', writes: 'a/it', command: 'true'}\n")},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, made := mended(c.text)
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s\nof problems\n%v", got, c.want, problemsIn([]byte(c.text)))
			}
			if again, more := mended(got); again != got || len(more) > 0 {
				t.Errorf("mended twice:\n%s", again)
			}
			if (got == c.text) != (len(made) == 0) {
				t.Errorf("%d changes", len(made))
			}
		})
	}
}

// A file that is in order is not touched, no change goes beyond its line, and every change does away
// with a problem.
func FuzzMend(f *testing.F) {
	for _, c := range problemCases {
		f.Add(c.text)
	}
	for _, text := range []string{"\ufeffname: *x\n", "a: *b\r\nc: @d\r\n"} {
		f.Add(text)
	}
	for _, text := range texts(f) {
		f.Add(string(text))
	}
	f.Fuzz(func(t *testing.T, text string) {
		before := problemsIn([]byte(text))
		got, made := mended(text)
		if len(before) == 0 && got != text {
			t.Fatalf("a file in order was changed to %q", got)
		}
		if n := strings.Count(text, "\n"); strings.Count(got, "\n") != n {
			t.Fatalf("%q has not %d lines", got, n)
		}
		if len(made) > 0 && got == text {
			t.Fatalf("changes %+v have changed nothing", made)
		}
	})
}
