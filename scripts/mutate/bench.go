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
	quickly    = 500 * time.Millisecond // tests that together take less are tried first, and then twice as much,
	together   = 4 * time.Second        // up to so much
	mostMemory = 4 << 20                // KiB: a mutant may allocate for ever
)

// bench is packages with mutants, compiled into programs of tests.
type bench struct {
	subjects []*subject
	folder   string
	seed     uint64
	programs []program
	all      []*timedTest
}

// subject is a package whose tests are measured.
type subject struct {
	*checked
	pkg      string
	folder   string // of the files with mutants
	all      []*mutant
	sample   []*mutant
	found    int // how many mutants there are
	excluded int // how many of them cannot change anything
}

// program is a compiled program of tests.
type program struct {
	path, folder string
	args         []string
}

// timedTest is a test, how long it takes, how long of that it computes, and the mutants that it reaches.
type timedTest struct {
	program         program
	name            string
	takes, computes time.Duration
	reaches         map[int]bool
}

// compile makes programs of tests of packages in which the first mutants of each subject are its sample.
// Those that the compiler refuses give way to the next ones.
func (b *bench) compile(sample int, tests []string) error {
	numbered := 0
	replace := map[string]string{}
	for _, s := range b.subjects {
		for _, m := range s.all {
			numbered++
			m.number = numbered
		}
		for s.sample == nil {
			s.sample = slices.Clone(s.all[:min(sample, len(s.all))])
			overlay, err := b.overlay(s, numbered, replace)
			if err != nil {
				return err
			}
			out, err := exec.Command("go", "build", "-gcflags=-e", "-overlay="+overlay, s.pkg).CombinedOutput()
			if err == nil {
				break
			}
			refused, err := s.refused(string(out))
			if err != nil {
				return err
			}
			s.all = slices.DeleteFunc(s.all, func(m *mutant) bool { return refused[m.number] })
			s.sample = nil
		}
	}
	return b.link(filepath.Join(b.folder, "overlay.json"), tests)
}

// overlay writes the files of a subject with mutants, beside those that are replaced already.
func (b *bench) overlay(s *subject, most int, replace map[string]string) (string, error) {
	write := func(path, text string) error {
		replace[path] = filepath.Join(s.folder, filepath.Base(path))
		return os.WriteFile(replace[path], []byte(text), 0o600)
	}
	err := write(filepath.Join(s.checked.folder, "mutants_chosen.go"), selecting(s.own.Name(), most))
	for _, path := range s.paths {
		var here []*mutant
		for _, m := range s.sample {
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
	mutantNumber = regexp.MustCompile(`mutant(?:Is|(?:Pick|Nil)\[[^(]*\])\((\d+)`)
)

// refused are the mutants on the lines that the compiler does not like.
func (s *subject) refused(out string) (map[int]bool, error) {
	numbers := map[int]bool{}
	for _, at := range compilerLine.FindAllStringSubmatch(out, -1) {
		text, err := os.ReadFile(filepath.Join(s.folder, at[1]))
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

// reach runs each test by itself, and notes which mutants make a difference in it. What does not pass in time without
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
			passes, computes := b.passes(p, []string{name}, slowest, 2*slowest, reachedVariable+"="+noted)
			if !passes {
				fmt.Printf("  left out: %s does not pass by itself within %s\n", name, slowest)
				continue
			}
			t := &timedTest{program: p, name: name, takes: time.Since(begun), computes: computes, reaches: map[int]bool{}}
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

// passes runs tests of a program, which may take so long and compute so long, and reports how long they
// computed.
func (b *bench) passes(p program, names []string, limit, compute time.Duration, set ...string) (bool, time.Duration) {
	temporary, err := os.MkdirTemp(b.folder, "r")
	if err != nil {
		return true, 0
	}
	defer os.RemoveAll(temporary)
	_ = os.Chmod(temporary, 0o755)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	limits := fmt.Sprintf(`ulimit -v %d; ulimit -t %d; exec "$0" "$@"`, mostMemory, int(compute.Seconds()))
	args := append([]string{"-c", limits, p.path,
		"-test.run=^(" + strings.Join(names, "|") + ")$", "-test.timeout=" + limit.String()}, p.args...)
	command := exec.CommandContext(ctx, "sh", args...)
	command.Dir = p.folder
	command.Env = append(os.Environ(), append(set, "TMPDIR="+temporary, "FAIRWAY_SEED="+fmt.Sprint(b.seed))...)
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	command.WaitDelay = 5 * time.Second
	err = command.Run()
	if state := command.ProcessState; state != nil {
		return err == nil, state.UserTime() + state.SystemTime()
	}
	return err == nil, 0
}

// tests are those in which a mutant makes a difference, the quickest first.
func (b *bench) tests(m *mutant) (reaching []*timedTest) {
	for _, t := range b.all {
		if t.reaches[m.number] {
			reaching = append(reaching, t)
		}
	}
	return reaching
}

// survives reports whether no test fails with a mutant: of those in which it makes a difference, first the
// quick ones are run, then more and more of the slow ones together.
func (b *bench) survives(m *mutant) bool {
	tests := b.tests(m)
	for most := quickly; len(tests) > 0; most = min(2*most, together) {
		p := tests[0].program
		var names []string
		var takes, computes time.Duration
		for _, t := range tests {
			if len(names) > 0 && (t.program.path != p.path || takes+t.takes > most) {
				break
			}
			names, takes, computes = append(names, t.name), takes+t.takes, computes+t.computes
		}
		// What hangs takes all of the time, and what spins all of the processor's, beside other processes too.
		passes, _ := b.passes(p, names, 5*takes+5*time.Second, 5*computes+3*time.Second,
			mutantVariable+"="+strconv.Itoa(m.number))
		if !passes {
			return false
		}
		tests = tests[len(names):]
	}
	return true
}
