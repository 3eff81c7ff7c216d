package workflow

import "testing"

// A command that names none of its outputs is told, and no other one is.
func TestUnnamedOutputs(t *testing.T) {
	for command, want := range map[string]int{
		"wc -l \"$in\"":                      1,
		"wc -l \"$in\" > \"$out\"":           0,
		"wc -l \"$in\" > ${out}":             0,
		"wc -l \"$in\" > counts/$x.txt":      0,
		"split \"$in\" counts/":              0,
		"./count.sh \"$in\"":                 0,
		"python3 programs/count.py \"$in\"":  0,
		"import os; open(os.environ['out'])": 0,
		"without the word":                   1,
		"export LC_ALL=C; wc -l \"$in\"":     1, // recounts, timeout: words with a part of a name, or the variable, within
		"timeout 5 recounts \"$in\"":         1,
		"discount --routes \"$in\" a.txtual": 1,
		"count --outdir=counts \"$in\"":      0,
		"count \"$in\" counts_a.txt":         0,
		"count -o x.txt \"$in\"":             0,
		"count -txt x \"$in\"":               1,
	} {
		text := "workflow: w\ninputs: {i: {files: 'in/{x}'}}\nsteps:\n  a:\n    each: '{x}'\n    writes: counts/{x}.txt\n" +
			"    command: |\n      " + command + "\n"
		w, err := Parse("t.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if got := w.Unnamed(); len(got) != want {
			t.Errorf("%s: %q", command, got)
		}
	}
}
