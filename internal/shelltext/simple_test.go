package shelltext

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// valueOf is what a word stands for.
func valueOf(w Word, variables map[string]string) string {
	var text strings.Builder
	for _, part := range w {
		text.WriteString(part.Text + variables[part.Variable])
	}
	return text.String()
}

// A simple command means what it means in bash.
func TestSimpleCommands(t *testing.T) {
	variables := map[string]string{"in": "a *b", "out": "c$in'"}
	for _, text := range []string{
		`/usr/bin/printf '%s\n' "$in" "$out"`,
		"/usr/bin/printf '%s|' -x --y=1 a/b.c,d:e@f%g \"\" ''  'it $in' \"x$in.y\"\n",
		`/usr/bin/printf '%s|' pre"$in"post"$out" # what it is`,
	} {
		words, ok := Read(text).Simple()
		if !ok {
			t.Errorf("%s is not simple", text)
			continue
		}
		var argv []string
		for _, w := range words {
			argv = append(argv, valueOf(w, variables))
		}
		inBash := exec.Command("bash", "-c", text)
		inBash.Env = os.Environ()
		for name, value := range variables {
			inBash.Env = append(inBash.Env, name+"="+value)
		}
		want, err := inBash.Output()
		if err != nil {
			t.Fatal(err)
		}
		if got, err := exec.Command(argv[0], argv[1:]...).Output(); err != nil || string(got) != string(want) {
			t.Errorf("%s: %q, %v; bash has %q", text, got, err, want)
		}
	}
}

func TestOtherCommandsAreNotSimple(t *testing.T) {
	for _, text := range []string{
		"", "# nothing", `cp $in "$out"`, `cp "${in%.gz}" x`, `cp "$IN" x`, `cp "$1" x`, `cp "$_" x`, `cp "$in" > x`,
		`cp *.x y`, `cp ~/x y`, `cp {a,b} c`, `cp a\ b c`, `cp "a\$b" c`, `cp "$(x)" y`, "cp `x` y", `x=1 cp a b`, `x=1`,
		`cp a b; cp c d`, "cp a b\ncp c d", `cp a b | cat`, `cp a b && true`, `cp a b &`, `! cp a b`, `time cp a b`,
		`echo x`, `cd x`, `. x`, `"$in" x`, `export x`, `[ x ]`, `[[ x ]]`, `(cp a b)`, `{ cp a b; }`, `cp $'a' b`,
		`cp $"a" b`, `cp a[1] b`, `cp a b <<< x`, `cp "${in}" b`, `f() { cp a b; }`, `cp a^b c`, `cp !a b`, `""`,
	} {
		if words, ok := Read(text).Simple(); ok {
			t.Errorf("%q is simple: %v", text, words)
		}
	}
}

func TestBuiltinsAreThoseOfBash(t *testing.T) {
	bash, err := exec.Command("bash", "-c", "compgen -b; compgen -k").Output()
	if err != nil {
		t.Skip(err)
	}
	for _, name := range strings.Fields(string(bash)) {
		if _, ok := Read(name + " x").Simple(); ok && !slices.Contains(builtins, name) {
			t.Errorf("bash does %s itself", name)
		}
	}
}
