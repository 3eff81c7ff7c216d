package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	slowest    = 90 * time.Second       // a test that takes longer is left out
	quickly    = 500 * time.Millisecond // tests that together take less are tried first
	mostMemory = 8 << 20                // KiB: a mutant may allocate for ever
)

// bench is a package with mutants, compiled into programs of tests.
type bench struct {
	*checked
	pkg      string
	folder   string
	seed     uint64
	programs []program
	all      []*timedTest
}

// program is a compiled program of tests.
type program struct {
	path, folder string
	args         []string
}

// timedTest is a test, how long it takes, and the mutants that it reaches.
type timedTest struct {
	program program
	name    string
	takes   time.Duration
	reaches map[int]bool
}

// compile makes programs of tests of packages with the first of the mutants, and returns these. Those
// that the compiler refuses give way to the next ones.
func (b *bench) compile(all []*mutant, sample int, packages []string) ([]*mutant, error) {
	for i, m := range all {
		m.number = i + 1
	}
	for {
		chosen := all[:min(sample, len(all))]
		overlay, err := b.overlay(chosen)
		if err != nil {
			return nil, err
		}
		out, err := exec.Command("go", "build", "-gcflags=-e", "-overlay="+overlay, b.pkg).CombinedOutput()
		if err == nil {
			return chosen, b.link(overlay, packages)
		}
		refused, err := b.refused(string(out))
		if err != nil {
			return nil, err
		}
		all = slices.DeleteFunc(all, func(m *mutant) bool { return refused[m.number] })
	}
}

// overlay writes the files with mutants.
func (b *bench) overlay(chosen []*mutant) (string, error) {
	most := 0
	for _, m := range chosen {
		most = max(most, m.number)
	}
	replace := map[string]string{}
	write := func(path, text string) error {
		replace[path] = filepath.Join(b.folder, filepath.Base(path))
		return os.WriteFile(replace[path], []byte(text), 0o600)
	}
	err := write(filepath.Join(b.checked.folder, "mutants_chosen.go"), selecting(b.own.Name(), most))
	for _, path := range b.paths {
		var here []*mutant
		for _, m := range chosen {
			if m.path == path {
				here = append(here, m)
			}
		}
		text, readErr := os.ReadFile(path)
		err = errors.Join(err, readErr)
		if len(here) > 0 {
			err = errors.Join(err, write(path, rewritten(text, here)))
		}
	}
	list, jsonErr := json.Marshal(map[string]map[string]string{"Replace": replace})
	overlay := filepath.Join(b.folder, "overlay.json")
	return overlay, errors.Join(err, jsonErr, os.WriteFile(overlay, list, 0o600))
}

var (
	compilerLine = regexp.MustCompile(`(?m)([\w]+\.go):(\d+):\d+: `)
	mutantNumber = regexp.MustCompile(`mutant(?:Is\(|Pick\[[^(]*\]\()(\d+)`)
)

// refused are the mutants on the lines that the compiler does not like.
func (b *bench) refused(out string) (map[int]bool, error) {
	numbers := map[int]bool{}
	for _, at := range compilerLine.FindAllStringSubmatch(out, -1) {
		text, err := os.ReadFile(filepath.Join(b.folder, at[1]))
		if err != nil {
			continue
		}
		line, _ := strconv.Atoi(at[2])
		if lines := strings.Split(string(text), "\n"); line <= len(lines) {
			for _, n := range mutantNumber.FindAllStringSubmatch(lines[line-1], -1) {
				k, _ := strconv.Atoi(n[1])
				numbers[k] = true
			}
		}
	}
	if len(numbers) == 0 {
		return nil, fmt.Errorf("mutants do not compile:\n%s", out)
	}
	return numbers, nil
}

// link makes the programs of tests.
func (b *bench) link(overlay string, packages []string) error {
	for i, pkg := range packages {
		path := filepath.Join(b.folder, fmt.Sprintf("tests%d", i))
		out, err := exec.Command("go", "test", "-c", "-vet=off", "-gcflags=all=-dwarf=false", "-overlay="+overlay,
			"-o", path, pkg).CombinedOutput()
		if err != nil {
			return fmt.Errorf("compile tests of %s: %w\n%s", pkg, err, out)
		}
		folder, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
		if err != nil {
			return fmt.Errorf("find %s: %w", pkg, err)
		}
		p := program{path: path, folder: strings.TrimSpace(string(folder))}
		p.args = append([]string{"-test.failfast", "-test.short"}, rapidFlags(p.folder)...)
		b.programs = append(b.programs, p)
	}
	return nil
}

// rapidFlags keep a test that fails, as it should, from leaving a file in the repository.
func rapidFlags(folder string) []string {
	tests, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
	for _, path := range tests {
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), `"pgregory.net/rapid"`) {
			return []string{"-rapid.nofailfile"}
		}
	}
	return nil
}

// reach runs each test by itself, and notes which mutants it reaches. What does not pass in time without
// a mutant cannot tell anything.
func (b *bench) reach() error {
	for _, p := range b.programs {
		list := exec.Command(p.path, "-test.list", ".")
		list.Dir = p.folder
		out, err := list.Output()
		if err != nil {
			return fmt.Errorf("list tests: %w", err)
		}
		for name := range strings.FieldsSeq(string(out)) {
			if strings.HasPrefix(name, "Benchmark") {
				continue
			}
			noted := filepath.Join(b.folder, "noted")
			if err := errors.Join(os.WriteFile(noted, nil, 0o600), os.Chmod(noted, 0o666)); err != nil {
				return err // processes of other users note too
			}
			begun := time.Now()
			if !b.passes(p, []string{name}, slowest, reachedVariable+"="+noted) {
				fmt.Printf("  left out: %s does not pass by itself within %s\n", name, slowest)
				continue
			}
			t := &timedTest{program: p, name: name, takes: time.Since(begun), reaches: map[int]bool{}}
			text, err := os.ReadFile(noted)
			if err != nil {
				return err
			}
			for n := range strings.FieldsSeq(string(text)) {
				k, _ := strconv.Atoi(n)
				t.reaches[k] = true
			}
			b.all = append(b.all, t)
		}
	}
	slices.SortStableFunc(b.all, func(a, b *timedTest) int { return cmp.Compare(a.takes, b.takes) })
	return nil
}

// passes runs tests of a program.
func (b *bench) passes(p program, names []string, limit time.Duration, set ...string) bool {
	temporary, err := os.MkdirTemp(b.folder, "r")
	if err != nil {
		return true
	}
	defer os.RemoveAll(temporary)
	_ = os.Chmod(temporary, 0o755)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	args := append([]string{"-c", fmt.Sprintf(`ulimit -v %d; exec "$0" "$@"`, mostMemory), p.path,
		"-test.run=^(" + strings.Join(names, "|") + ")$", "-test.timeout=" + limit.String()}, p.args...)
	command := exec.CommandContext(ctx, "sh", args...)
	command.Dir = p.folder
	command.Env = append(os.Environ(), append(set, "TMPDIR="+temporary, "FAIRWAY_SEED="+fmt.Sprint(b.seed))...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	return command.Run() == nil
}

// tests are those that reach a mutant, the quickest first.
func (b *bench) tests(m *mutant) (reaching []*timedTest) {
	for _, t := range b.all {
		if t.reaches[m.number] {
			reaching = append(reaching, t)
		}
	}
	return reaching
}

// survives reports whether no test fails with a mutant: of those that reach it, first the quick ones
// are run, then one after the other.
func (b *bench) survives(m *mutant) bool {
	tests := b.tests(m)
	for len(tests) > 0 {
		n, takes := 1, tests[0].takes
		first := tests[0].program.path
		for n < len(tests) && tests[n].program.path == first && takes+tests[n].takes < quickly {
			takes += tests[n].takes
			n++
		}
		var names []string
		for _, t := range tests[:n] {
			names = append(names, t.name)
		}
		if !b.passes(tests[0].program, names, 5*takes+10*time.Second, mutantVariable+"="+strconv.Itoa(m.number)) {
			return false
		}
		tests = tests[n:]
	}
	return true
}
