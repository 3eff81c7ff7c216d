package shelltext

import (
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

func expectedOf(text string) string {
	var names []string
	for _, m := range Read(text).Expected() {
		if !strings.HasPrefix(text[m.Offset:], m.Text) {
			names = append(names, fmt.Sprintf("(%q is not at %d)", m.Text, m.Offset))
		}
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}

func TestExpectedVariables(t *testing.T) {
	for text, want := range map[string]string{
		`cat $inn > "$out"`:                                    "inn out",
		`cat ${inn} "${out%.gz}" "${#x}" "${y[@]}"`:            "inn out x y",
		`x=1; echo $x $y`:                                      "y",
		`x=1 prog $x`:                                          "",
		`for f in $in; do echo $f; done`:                       "in",
		`for ((i = 0; i < n; i++)); do :; done`:                "n",
		`while read -r a b; do echo $a $b; done`:               "",
		`IFS=, read -ra parts <<< "$line"; echo "${parts[0]}"`: "line",
		`mapfile -t all < list; echo "${all[@]}"`:              "",
		`f() { local n=$1; echo $n $2; }; f a b`:               "",
		`awk "{ print $1 }" x`:                                 "1",
		`awk '{ print $1 }' x`:                                 "",
		`set -- a b; echo $1`:                                  "",
		`echo $@ $# $? $$ $0 "$*"`:                             "",
		`echo ${x:-none} ${y:=1} $y ${z?missing} ${v+set}`:     "",
		`echo ${x:-$fallback}`:                                 "fallback",
		`head -n $((4 * first)) x`:                             "first",
		`((count++)); echo $count`:                             "",
		`let total=a+1; echo $total`:                           "a",
		`let "p = j * 2" 'q = 1, t++'; echo $p $q $t`:          "",
		`let "$name = 1"; echo $x`:                             "",
		`let i++ n; echo $i`:                                   "n",
		`printf -v name %03d 7; echo $name`:                    "",
		`declare -A table; table[a]=1; echo ${table[a]}`:       "",
		`export threads=4; echo $threads`:                      "",
		`. ./settings; echo $anything`:                         "",
		`eval "$(tool)"; echo $anything`:                       "in-eval",
		`read "$name"; echo $x`:                                "",
		`echo ${!prefix*}`:                                     "",
		`exec {fd}> log; echo x >&$fd`:                         "",
		`[[ -v maybe ]] && echo $maybe`:                        "",
		"cat <<E\n$inn\nE\n":                                   "inn",
		"cat <<'E'\n$inn\nE\n":                                 "",
		`echo '$inn' \$inn`:                                    "",
		"echo `cat $inn`":                                      "inn",
		`echo "$(cat <(sort $inn))"`:                           "inn",
		`select x in $l; do echo $x; done`:                     "l",
		`echo $inn $inn`:                                       "inn",
		`echo "no end`:                                         "",
	} {
		if want == "in-eval" {
			want = ""
		}
		if got := expectedOf(text); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestBraces(t *testing.T) {
	for text, want := range map[string]string{
		`cat {input} > {output.bam}`:             "{input} {output.bam}",
		`sort -o "{out}" x`:                      "{out}",
		`echo {params[x]}`:                       "{params[x]}",
		`awk '{print}' x`:                        "",
		`python3 -c "print(f'{sample}')"`:        "",
		"cat <<E\n{sample}\nE\n":                 "",
		"python3 - \"\n{sample}\n\"":             "",
		`echo ${sample} x{a,b} {} {1..3} "${x}"`: "",
		`perl -ne "\$h{sample}++" x`:             "",
		`echo "\$x {sample}" results_{sample}`:   "{sample} {sample}",
		`{ echo; }`:                              "",
	} {
		var got []string
		for _, m := range Read(text).Braces() {
			if !strings.HasPrefix(text[m.Offset:], m.Text) {
				t.Errorf("%s: %q is not at %d", text, m.Text, m.Offset)
			}
			got = append(got, m.Text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\ngot  %s\nwant %s", text, got, want)
		}
	}
}

func TestInterpreterOfFirstLine(t *testing.T) {
	for text, want := range map[string][]string{
		"#!/bin/sh\n":                  {"/bin/sh"},
		"#! /usr/bin/env python3\r\nx": {"/usr/bin/env", "python3"},
		"#!/usr/bin/awk -f -v":         {"/usr/bin/awk", "-f -v"},
		"#!\n":                         nil,
		"echo\n#!/bin/sh":              nil,
		"":                             nil,
	} {
		if got := Interpreter(text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func strictly(t *testing.T, text string) (said string, code int) {
	t.Helper()
	out, err := exec.Command("bash", "-c", "set -euo pipefail;"+text).Output()
	if ended, ok := errors.AsType[*exec.ExitError](err); ok {
		return string(out), ended.ExitCode()
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(out), 0
}

// A program that stops reading is no failure of the one before it, wherever
// the pipe stands.
func TestPipesThatStopEarlySucceed(t *testing.T) {
	needBash(t)
	for text, want := range map[string]string{
		`seq 1000000 | head -1; echo next`:                             "1\nnext\n",
		`seq 1000000 | head -1 && echo next`:                           "1\nnext\n",
		`if seq 1000000 | head -1; then echo then; else echo else; fi`: "1\nthen\n",
		`x=$(seq 1000000 | head -1); echo $x`:                          "1\n",
		"x=`seq 1000000 | head -1`; echo $x":                           "1\n",
		`seq 1000000 | cat | head -1 | cat; echo next`:                 "1\nnext\n",
		`f() { seq 1000000 | head -1; }; f; f`:                         "1\n1\n",
		`for i in {1..100000}; do echo $i; done | head -1; echo next`:  "1\nnext\n",
		`(seq 1000000; seq 1000000) | head -1; echo next`:              "1\nnext\n",
		`yes | while read -r a; do echo $a; break; done; echo next`:    "y\nnext\n",
		`trap 'echo bye' EXIT; seq 1000000 | head -1; echo next`:       "1\nnext\nbye\n",
		"seq 1000000 | # all of them\n head -1; echo next":             "1\nnext\n",
		"seq 1000000 \\\n | head -1; echo next":                        "1\nnext\n",
		"cat <<E - <(seq 1000000) | head -1\nfirst\nE\necho next":      "first\nnext\n",
		`time seq 1000000 | head -1; echo next`:                        "1\nnext\n",
		`! seq 1000000 | head -1; echo next`:                           "1\nnext\n",
	} {
		if said, code := strictly(t, GuardPipes(text)); said != want || code != 0 {
			t.Errorf("%s\nended with %d and printed %q, want %q", text, code, said, want)
		}
	}
}

// No other failure within a pipe is lost.
func TestPipesKeepTheirFailures(t *testing.T) {
	needBash(t)
	for text, want := range map[string]int{
		`nosuchprogram --x | sort; echo no`:                     127,
		`false | cat; echo no`:                                  1,
		`(exit 3) | cat | cat; echo no`:                         3,
		`cat | (exit 4) | cat; echo no`:                         4,
		`true | (exit 5); echo no`:                              5,
		`(echo a; exit 6) | head -1; echo no`:                   6,
		`f() { false; echo no; }; f | cat; echo no`:             1,
		`for i in 1 2; do false; done | cat; echo no`:           1,
		`sh -c 'kill -TERM $$' | cat; echo no`:                  143,
		`seq 1000000 | (head -1; exit 7) >/dev/null; echo no`:   7,
		`echo x | gzip | head -c 10 | gunzip 2>/dev/null; echo`: 1,
		`x=$(false | cat); echo no`:                             1,
		`false | echo "$(true | true)"`:                         1,
	} {
		if said, code := strictly(t, GuardPipes(text)); code != want || strings.Contains(said, "no") {
			t.Errorf("%s\nended with %d and printed %q, want %d", text, code, said, want)
		}
	}
}

// Where no program stops early, a command means what it meant before it was
// changed: the same words in the same order, and the same code at the end.
func TestGuardedPipesMeanWhatTheyMeant(t *testing.T) {
	needBash(t)
	for _, text := range []string{
		`if ! echo x | grep -q y; then echo none; fi`,
		`if ! echo x | grep -q x; then echo none; else echo some; fi`,
		`!  echo x | false; echo $?`,
		`! false | true; echo $?`,
		"! \\\n false | true; echo $?",
		"!\tfalse | true && echo yes || echo no",
		`while ! echo x | grep -q y; do echo once; break; done`,
		`! </dev/null cat | grep -q x; echo $?`,
		`! x=1 y=2 env | grep -c '^x='; echo $?`,
		`! { false; } | true; echo $?`,
		`! (false) | true | true; echo $?`,
		`! if true; then false; fi | cat; echo $?`,
		`! true |& false; echo $?`,
		`! echo "$(! echo a | cat)" | cat; echo $?`,
		`f() { ! echo x | grep -q y; }; f; echo $?`,
		`true && ! true | false; echo $?`,
		`! time false | true; echo $?`,
		`time ! true | false; echo $?`,
		`! true | ! false; echo $?`,
		`! ! true | false; echo $?`,
		`</dev/null cat | cat; echo $?`,
		`>/dev/null 2>&1 echo x | cat; echo $?`,
		`false | true || echo "${PIPESTATUS[@]}"`,
		`(trap 'echo bye' EXIT; echo a) | cat`,
		`trap 'echo end' EXIT; echo a | cat; exit 3`,
		`f() { echo a | { cat; return 4; }; echo no; }; f`,
		`for i in 1 2; do echo $i | cat; [ $i = 1 ] || exit 2; done`,
		`set -- a b; echo $# | cat; echo "$1" | cat`,
		`x=1; x=2 | true; echo $x`,
		`(exit 9) | cat & wait $!`,
	} {
		want, code := strictly(t, text)
		if said, ended := strictly(t, GuardPipes(text)); said != want || ended != code {
			t.Errorf("%s\nended with %d and printed %q; as it stands it ends with %d and prints %q", text, ended,
				said, code, want)
		}
	}
}

func TestCommandsWithoutPipesStayAsTheyAre(t *testing.T) {
	for _, text := range []string{
		"echo a", "a || b", "echo 'a | b'", "echo \"no end | x", "case x in a|b) ;; esac", "cat <<E\na | b\nE\n",
	} {
		if got := GuardPipes(text); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
}

func needBash(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash here")
	}
}

// Whatever the text, what is read of it stands in it, and what GuardPipes
// makes of it can be read.
func FuzzRead(f *testing.F) {
	for _, text := range []string{
		"a | b", "x=`a | b`; echo ${x:-$y}", "cat <<E | head\n$x {y}\nE", "((a=b++)); read c <<< \"$d\"", "! time a |& b",
		"f() { echo $1 | cat; }", "${a[b]} $((c[d]))", "{a} \"{b.c}\"",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read := Read(text)
		for _, m := range read.Expected() {
			if m.Name == "" || m.Offset < 0 || m.Offset >= len(text) {
				t.Errorf("%q: %+v", text, m)
			}
		}
		for _, m := range read.Braces() {
			if !strings.HasPrefix(text[m.Offset:], m.Text) {
				t.Errorf("%q: %+v", text, m)
			}
		}
		if guarded := GuardPipes(text); guarded != text && Read(guarded) == nil {
			t.Errorf("%q became %q", text, guarded)
		}
	})
}
