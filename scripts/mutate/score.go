package main

import (
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"io"
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

// scored are the packages whose tests are measured, and those whose tests also are theirs.
var scored = []struct {
	pkg string
	by  []string
}{
	{"fairway/lib/fifo", nil},
	{"fairway/internal/eviction", nil},
	{"fairway/internal/flow", []string{"fairway/internal/sim"}},
	{"fairway/internal/flow/workflow", []string{"fairway/internal/flow"}},
	{"fairway/internal/flow/pattern", []string{"fairway/internal/flow/workflow", "fairway/internal/flow"}},
	{"fairway/internal/cache", nil},
	{"fairway/internal/dispatch", []string{"fairway/internal/sim"}},
	{"fairway/internal/dispatch/records", []string{"fairway/internal/dispatch"}},
	{"fairway/internal/dispatch/results", []string{"fairway/internal/dispatch"}},
	{"fairway/internal/dispatch/rows", []string{"fairway/internal/dispatch"}},
	{"fairway/internal/dispatch/fairtree", []string{"fairway/internal/dispatch"}},
	{"fairway/lib/orwl", nil},
	{"fairway/lib/sched", nil},
	{"fairway/internal/pilot/stage", []string{"fairway/internal/pilot"}},
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
	for _, p := range scored {
		if flags.NArg() > 0 && !slices.ContainsFunc(flags.Args(), func(a string) bool { return strings.Contains(p.pkg, a) }) {
			continue
		}
		name := strings.TrimPrefix(p.pkg, "fairway/")
		got, err := s.measure(p.pkg, p.by)
		if err != nil {
			err = fmt.Errorf("%s: %w", name, err)
		} else if least := written[name]; got < least {
			err = fmt.Errorf("%s: the score is %.3f, and scripts/mutate/RESULTS.md says %.2f", name, got, least)
		}
		errs = append(errs, err)
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

// measure returns the share of the sample of a package that its tests, or those of others, notice.
func (s scoring) measure(pkg string, by []string) (float64, error) {
	begun := time.Now()
	c, err := checkTypes(pkg)
	if err != nil {
		return 0, err
	}
	all, err := c.mutantsOf()
	if err != nil {
		return 0, err
	}
	left, err := unchanging(pkg)
	if err != nil {
		return 0, err
	}
	found := len(all)
	all = slices.DeleteFunc(all, func(m *mutant) bool { return left[m.name] })
	if found-len(all) != len(left) {
		return 0, fmt.Errorf("unchanging.txt names %d mutants, of which %d are there", len(left), found-len(all))
	}
	s.shuffle(all)
	folder, err := os.MkdirTemp("", "m") // short, for sockets in it
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(folder)
	if err := os.Chmod(folder, 0o755); err != nil { // tests with several users must get there
		return 0, err
	}
	b := &bench{checked: c, pkg: pkg, folder: folder, seed: s.seed}
	sample, err := b.compile(all, s.sample, append([]string{pkg}, by...))
	if err != nil {
		return 0, err
	}
	if err := b.reach(); err != nil {
		return 0, err
	}
	survivors, tried, err := s.tryAll(b, sample)
	if err != nil {
		return 0, err
	}
	slices.SortFunc(survivors, func(a, b *mutant) int {
		return cmp.Or(strings.Compare(a.path, b.path), cmp.Compare(a.line, b.line), strings.Compare(a.name, b.name))
	})
	for _, m := range survivors {
		kind := "survives"
		if len(b.tests(m)) == 0 {
			kind = "unreached"
		}
		fmt.Printf("  %-9s %s:%d %s\n", kind, filepath.Base(m.path), m.line, m.name)
	}
	if tried < len(sample) {
		return 0, fmt.Errorf("there was time for %d of %d mutants only: set -limit", tried, len(sample))
	}
	got := 1 - float64(len(survivors))/float64(max(tried, 1))
	fmt.Printf("%s: %.3f, %d of %d mutants noticed (%d there are, %d cannot change anything), seed %d, %.0f s\n",
		strings.TrimPrefix(pkg, "fairway/"), got, tried-len(survivors), tried, found, len(left), s.seed,
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
func (s scoring) tryAll(b *bench, sample []*mutant) (survivors []*mutant, tried int, err error) {
	noticed, log, err := s.noticed(b.pkg)
	if err != nil {
		return nil, 0, err
	}
	defer log.Close()
	var mu sync.Mutex
	var running sync.WaitGroup
	free := make(chan struct{}, max(1, s.at))
	for _, m := range sample {
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
				_, logErr := fmt.Fprintf(log, "%s\t%s\n", b.pkg, m.name)
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
