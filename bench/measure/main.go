package measure

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strings"
)

// Run is what the flags ask for that all benchmarks have.
type Run struct {
	Quick   bool   // few and short rounds, which show that the benchmark works and no more
	Only    string // names of the rows to measure, separated by commas; empty: all
	Profile string // the file for a CPU profile; empty: none
	JSON    bool   // the result is printed as one JSON object
	rounds  int
}

// Rounds is how many rounds to measure: what -rounds says, or else the usual number, or that of -quick.
func (r Run) Rounds(usual, quick int) int {
	if r.Quick {
		usual = quick
	}
	return cmp.Or(r.rounds, usual)
}

// Wants reports whether the row of a name is to be measured.
func (r Run) Wants(name string) bool {
	return r.Only == "" || slices.Contains(strings.Split(r.Only, ","), name)
}

// Result is what a benchmark prints, as JSON or for a person.
type Result func(asJSON bool) error

// Rows is a table with a line for each row. The heading may be empty.
func Rows[R any](heading string, rows []R, line func(R) string) Result {
	return func(asJSON bool) error {
		if heading != "" && !asJSON {
			fmt.Println(heading)
		}
		return Print(rows, asJSON, line)
	}
}

// Object is one value, and its text for a person.
func Object(value fmt.Stringer) Result {
	return func(asJSON bool) error {
		if asJSON {
			return PrintJSON(value)
		}
		_, err := fmt.Print(value)
		return err
	}
}

// Main is what each benchmark is: it reads the flags, which are those of Run and what the program has
// defined for itself, measures, and prints the result. A part of a benchmark that runs in a process
// of its own has none, nil.
func Main(measure func(Run) (Result, error)) {
	var r Run
	flag.BoolVar(&r.JSON, "json", false, "print one JSON object")
	flag.BoolVar(&r.Quick, "quick", false, "few and short rounds, which show that the benchmark works and no more")
	flag.IntVar(&r.rounds, "rounds", 0, "rounds to measure; 0: the usual number")
	flag.StringVar(&r.Only, "only", "", "measure only the rows with these `names`, separated by commas")
	flag.StringVar(&r.Profile, "cpuprofile", "", "write a CPU profile of what is measured to this `file`")
	flag.Parse()
	result, err := measure(r)
	if err == nil && result != nil {
		err = result(r.JSON)
	}
	ExitOn(err)
}

// ExitOn ends the program if there is an error, and says which.
func ExitOn(err error) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

// StartProfile begins a CPU profile of this process, if a file is named, and returns what ends it.
func StartProfile(path string) (end func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return pprof.StopCPUProfile, pprof.StartCPUProfile(file)
}
