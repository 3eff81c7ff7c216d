package hq

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"fairway/internal/quantity"
)

func TestHQScript(t *testing.T) {
	text := "#!/bin/bash\n" +
		"### ---\n#HQ --name nf-hello_(1)\n" +
		"#HQ --log \"/data/my\\ runs/.command.log\"\n\n#HQX no option\n#HQ --resource mem=2048 --cpus 2\n" +
		"set -e\n#HQ --cpus 8\n"
	script, err := readHQScript(text)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"--name", "nf-hello_(1)", "--log", "/data/my runs/.command.log", "--resource", "mem=2048", "--cpus", "2",
	}
	if !slices.Equal(script.options, want) || !slices.Equal(script.interpreter, []string{"/bin/bash"}) {
		t.Errorf("options %q, interpreter %q", script.options, script.interpreter)
	}
	if _, err := readHQScript("#HQ --name 'a\n"); err == nil {
		t.Error("a quote that is not closed was accepted")
	}
}

// A tag of Nextflow is a label, and may hold what means something to a shell.
func TestTagsOfNextflowAreLabels(t *testing.T) {
	for _, name := range []string{
		"nf-A_(plain)", "nf-A_(it's)", `nf-A_(quote"here)`, "nf-A_(a\tb)", "nf-A_((x))", `nf-A_(back\slash)`,
		"nf-A_(two words --cpus 9)", "nf-A:B_($HOME `x`)", "nf-A_(# 1)", "nf-A_()",
	} {
		script, err := readHQScript("#!/bin/bash\n#HQ --name " + name + "\n#HQ --cpus 2\n")
		if want := []string{"--name", name, "--cpus", "2"}; err != nil || !slices.Equal(script.options, want) {
			t.Errorf("%q: %q, %v", name, script.options, err)
		}
	}
	long, err := readHQScript("#HQ --name nf-A_(" + strings.Repeat("é", 2000) + ")\n")
	if err != nil || len(long.options[1]) > maxHQName+3 || !utf8.ValidString(long.options[1]) {
		t.Error(long, err)
	}
}

func TestShellWords(t *testing.T) {
	for line, want := range map[string][]string{
		``: nil, `  a  b	c `: {"a", "b", "c"}, `'a b' "c d"e f\ g`: {"a b", "c de", "f g"}, `""`: {""},
		`'\' "\""`: {`\`, `"`}, `a\\b`: {`a\b`}, `$HOME *`: {"$HOME", "*"},
	} {
		if words, err := shellWords(line); err != nil || !slices.Equal(words, want) {
			t.Errorf("%q: %q, %v, want %q", line, words, err, want)
		}
	}
}

func TestHQAmounts(t *testing.T) {
	for text, want := range map[string]int64{
		"2048": 2 << 30, "2147483648": 2 << 30, "1": 1 << 20, "16777215": 16777215 << 20, "16777216": 16 << 20,
	} {
		if bytes, err := hqMemory(text); err != nil || bytes != want {
			t.Errorf("mem=%s is %s, %v, want %s", text, quantity.Bytes(bytes), err, quantity.Bytes(want))
		}
	}
	for text, want := range map[string]float64{
		"600sec": 600, "90": 90, "1h 30m": 5400, "2days": 172800, "1h30min": 5400, "01:30:00": 5400, "10 min": 600,
	} {
		if d, err := hqDuration(text); err != nil || d.Seconds() != want {
			t.Errorf("%q is %v, %v, want %v s", text, d, err, want)
		}
	}
	for _, text := range []string{"", "x", "-5sec", "5 parsecs", "1:2:3:4"} {
		if d, err := hqDuration(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
}
