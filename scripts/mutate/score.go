package main

import (
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

//go:embed unchanging.txt
var unchangingList string

// scored are the packages whose tests are measured, those that stand on each other together, and those whose
// tests also are theirs. The tokens of lib/orwl are not: they are handed over where nothing can be noted.
var scored = []struct {
	packages []string
	by       []string
}{
	{[]string{"fairway/lib/fifo"}, nil},
	{[]string{"fairway/internal/eviction"}, nil},
	{[]string{
		"fairway/internal/flow", "fairway/internal/flow/workflow", "fairway/internal/flow/pattern",
	}, []string{"fairway/internal/sim"}},
	{[]string{"fairway/internal/cache"}, nil},
	{[]string{
		"fairway/internal/dispatch", "fairway/internal/dispatch/records", "fairway/internal/dispatch/results",
		"fairway/internal/dispatch/rows", "fairway/internal/dispatch/fairtree", "fairway/internal/dispatch/estimate",
		"fairway/internal/dispatch/copies", "fairway/internal/dispatch/delay", "fairway/internal/dispatch/health",
		"fairway/internal/dispatch/pilotplan", "fairway/internal/dispatch/pools", "fairway/internal/dispatch/room",
	}, []string{"fairway/internal/sim"}},
	{[]string{
		"fairway/lib/orwl", "fairway/lib/orwl/internal/distribution", "fairway/lib/orwl/internal/checkpoint",
		"fairway/lib/orwl/internal/transport", "fairway/lib/orwl/internal/memory",
	}, nil},
	{[]string{
		"fairway/lib/sched", "fairway/lib/sched/internal/notices", "fairway/lib/sched/internal/processors",
	}, nil},
	{[]string{"fairway/internal/pilot/stage"}, []string{"fairway/internal/pilot"}},
}

// scoring is how packages are measured.
type scoring struct {
	seed   uint64
	sample int
	at     int       // how many mutants are tried at once
	ends   time.Time // when all packages must have been measured
	log    string    // what earlier runs noticed, or ""
}

// score measures which share of small changes the tests of packages notice.
func score(args []string) error {
	flags := flag.NewFlagSet("mutate score", flag.ExitOnError)
	var s scoring
	flags.Uint64Var(&s.seed, "seed", 1, "draw the mutants by this `number`")
	flags.IntVar(&s.sample, "sample", 200, "try this `number` of mutants of each package")
	flags.IntVar(&s.at, "at", 2, "how many `mutants` are tried at once")
	limit := flags.Duration("limit", 2*time.Hour, "try no further mutants, of all packages, after this `time`")
	flags.StringVar(&s.log, "log", "", "note in this `file` what is noticed, and do not try it again")
	flags.Usage = func() {
		fmt.Fprintln(flags.Output(), "usage: mutate score [flags] [part of a package's name]...")
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); err != nil {
		return err
	}
	s.ends = time.Now().Add(*limit)
	written, err := writtenScores()
	if err != nil {
		return err
	}
	var errs []error
	for _, group := range scored {
		chosen := slices.DeleteFunc(slices.Clone(group.packages), func(pkg string) bool {
			asked := func(part string) bool { return strings.Contains(pkg, part) }
			return flags.NArg() > 0 && !slices.ContainsFunc(flags.Args(), asked)
		})
		if len(chosen) > 0 {
			errs = append(errs, s.measure(chosen, slices.Concat(group.packages, group.by), written))
		}
	}
	return errors.Join(errs...)
}

var scoreRow = regexp.MustCompile("(?m)^\\| `([a-z/]+)` \\| ([01]\\.[0-9]+) ")

// writtenScores are those of RESULTS.md, which may not fall.
func writtenScores() (map[string]float64, error) {
	text, err := os.ReadFile("scripts/mutate/RESULTS.md")
	if err != nil {
		return nil, err
	}
	written := map[string]float64{}
	for _, row := range scoreRow.FindAllStringSubmatch(string(text), -1) {
		if written[row[1]], err = strconv.ParseFloat(row[2], 64); err != nil {
			return nil, err
		}
	}
	return written, nil
}

// unchanging are the names of mutants of a package that cannot change what it does. In the list a line
// is the package, the mutant and the reason, with tabs between them.
func unchanging(pkg string) (map[string]bool, error) {
	names := map[string]bool{}
	for line := range strings.Lines(unchangingList) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		parts := strings.Split(line, "\t")
		if len(parts) != 3 || parts[2] == "" {
			return nil, fmt.Errorf("unchanging.txt: %q is no package, mutant and reason", line)
		}
		if parts[0] == strings.TrimPrefix(pkg, "fairway/") {
			names[parts[1]] = true
		}
	}
	return names, nil
}

// measure tells which share of a sample of each package tests notice, and refuses one that has fallen.
func (s scoring) measure(packages, tests []string, written map[string]float64) error {
	begun := time.Now()
	folder, err := os.MkdirTemp("", "m") // short, for sockets in it
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if err := os.Chmod(folder, 0o755); err != nil { // tests with several users must get there
		return err
	}
	b := &bench{folder: folder, seed: s.seed}
	for i, pkg := range packages {
		subject, err := s.subject(pkg, filepath.Join(folder, fmt.Sprint(i)))
		if err != nil {
			return fmt.Errorf("%s: %w", named(pkg), err)
		}
		if err := os.MkdirAll(subject.folder, 0o755); err != nil {
			return err
		}
		b.subjects = append(b.subjects, subject)
	}
	if err := b.compile(s.sample, tests); err != nil {
		return fmt.Errorf("%s: %w", named(packages[0]), err)
	}
	if err := b.reach(); err != nil {
		return fmt.Errorf("%s: %w", named(packages[0]), err)
	}
	fmt.Printf("  %d tests of %s, compiled and run one by one: %.0f s\n", len(b.all), named(packages[0]),
		time.Since(begun).Seconds())
	var errs []error
	for _, subject := range b.subjects {
		name := named(subject.pkg)
		got, err := s.share(b, subject)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		} else if least := written[name]; got < least {
			err = fmt.Errorf("%s: the score is %.3f, and scripts/mutate/RESULTS.md says %.2f", name, got, least)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

func named(pkg string) string { return strings.TrimPrefix(pkg, "fairway/") }

// subject finds the mutants of a package that can change something, in the order in which they are drawn.
func (s scoring) subject(pkg, folder string) (*subject, error) {
	c, err := checkTypes(pkg)
	if err != nil {
		return nil, err
	}
	all, err := c.mutantsOf()
	if err != nil {
		return nil, err
	}
	left, err := unchanging(pkg)
	if err != nil {
		return nil, err
	}
	found := len(all)
	gone := maps.Clone(left)
	all = slices.DeleteFunc(all, func(m *mutant) bool {
		delete(gone, m.name)
		return left[m.name]
	})
	if len(gone) > 0 {
		return nil, fmt.Errorf("unchanging.txt names mutants that are not there: %q", slices.Sorted(maps.Keys(gone)))
	}
	s.shuffle(all)
	return &subject{checked: c, pkg: pkg, folder: folder, all: all, found: found, excluded: len(left)}, nil
}

// share returns the share of the sample of a package that tests notice.
func (s scoring) share(b *bench, subject *subject) (float64, error) {
	begun := time.Now()
	survivors, tried, err := s.tryAll(b, subject)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(survivors, func(a, b *mutant) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.line, b.line), strings.Compare(a.name, b.name))
	})
	for _, m := range survivors {
		kind := "survives"
		if len(b.tests(m)) == 0 {
			kind = "unmoved"
		}
		fmt.Printf("  %-9s %s:%d %s\n", kind, filepath.Base(m.path), m.line, m.name)
	}
	if tried < len(subject.sample) {
		return 0, fmt.Errorf("there was time for %d of %d mutants only: set -limit", tried, len(subject.sample))
	}
	got := 1 - float64(len(survivors))/float64(max(tried, 1))
	fmt.Printf("%s: %.3f, %d of %d mutants noticed (%d there are, %d cannot change anything), seed %d, %.0f s\n",
		named(subject.pkg), got, tried-len(survivors), tried, subject.found, subject.excluded, s.seed,
		time.Since(begun).Seconds())
	return got, nil
}

// shuffle draws an order in which a mutant's place hangs on its name alone: where one comes or goes, a
// sample of the others stays what it was.
func (s scoring) shuffle(all []*mutant) {
	drawn := func(m *mutant) uint64 {
		h := fnv.New64a()
		_, _ = fmt.Fprint(h, s.seed, m.name)
		return rand.NewPCG(h.Sum64(), s.seed).Uint64()
	}
	slices.SortFunc(all, func(a, b *mutant) int {
		return cmp.Or(cmp.Compare(drawn(a), drawn(b)), strings.Compare(a.name, b.name))
	})
}

// tryAll returns those of a sample that no test notices, and how many were tried in the time there is.
func (s scoring) tryAll(b *bench, subject *subject) (survivors []*mutant, tried int, err error) {
	noticed, log, err := s.noticed(subject.pkg)
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	var mu sync.Mutex
	var running sync.WaitGroup
	free := make(chan struct{}, max(1, s.at))
	for _, m := range subject.sample {
		if noticed[m.name] {
			tried++
			continue
		}
		free <- struct{}{}
		if time.Now().After(s.ends) {
			break
		}
		tried++
		running.Go(func() {
			defer func() { <-free }()
			survives := b.survives(m)
			mu.Lock()
			defer mu.Unlock()
			if survives {
				survivors = append(survivors, m)
			} else {
				_, logErr := fmt.Fprintf(log, "%s\t%s\n", subject.pkg, m.name)
				err = errors.Join(err, logErr)
			}
		})
	}
	running.Wait()
	return survivors, tried, err
}

// noticed are the names of the mutants of a package that earlier runs noticed, and the log to note more in.
func (s scoring) noticed(pkg string) (map[string]bool, *os.File, error) {
	names := map[string]bool{}
	if s.log == "" {
		log, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
		return names, log, err
	}
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(log)
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSuffix(line, "\n"), pkg+"\t"); ok {
			names[name] = true
		}
	}
	return names, log, err
}
