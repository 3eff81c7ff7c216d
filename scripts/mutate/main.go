// Mutate takes the mechanisms of docs/papers.md out of the code, one after the other, and
// shows for each that the test which is cited there fails without it. It changes no file: go test
// reads the changed ones in the place of those that are there (-overlay).
//
//	go run ./scripts/mutate               all rows of mutations.txt
//	go run ./scripts/mutate -tenth 3      those whose number ends in 3
//	go run ./scripts/mutate -only wait    those whose mechanism has "wait" in its name
//
// And it measures the tests of packages that decide: of a sample of small changes, which share do
// they notice?
//
//	go run ./scripts/mutate score         all packages of score.go
//	go run ./scripts/mutate score fifo    those with "fifo" in their name
package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

//go:embed mutations.txt
var rows string

// rowTimeout is how long one test may take: a mutation may make it wait for ever.
const rowTimeout = 3 * time.Minute

func main() {
	if len(os.Args) > 1 && os.Args[1] == "score" {
		if err := score(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "mutate score:", err)
			os.Exit(1)
		}
		return
	}
	tenth := flag.Int("tenth", -1, "run only every tenth row, from this `number`, 0 to 9, on")
	only := flag.String("only", "", "run only rows with this `text` in the name of the mechanism")
	at := flag.Int("at", 1, "how many `tests` run at once")
	list := flag.Bool("list", false, "list the rows, and that what they and unchanging.txt name is there, without tests")
	flag.Parse()
	if err := run(*tenth, *only, *at, *list); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

func run(tenth int, only string, at int, list bool) error {
	all, err := parse(rows)
	if err != nil {
		return err
	}
	var chosen []mutation
	for i, m := range all {
		if (tenth < 0 || i%10 == tenth%10) && strings.Contains(m.mechanism, only) {
			chosen = append(chosen, m)
		}
	}
	folder, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	if list {
		return check(chosen)
	}
	outcomes := make([]string, len(chosen))
	free := make(chan struct{}, max(1, at))
	var running sync.WaitGroup
	for i, m := range chosen {
		free <- struct{}{}
		running.Go(func() {
			begun := time.Now()
			outcomes[i] = try(m, filepath.Join(folder, fmt.Sprint(i)))
			verdict := "noticed"
			if outcomes[i] != "" {
				verdict = outcomes[i]
			}
			fmt.Printf("%-60s %5.1f s  %s\n", m.mechanism, time.Since(begun).Seconds(), verdict)
			<-free
		})
	}
	running.Wait()
	var missed []string
	for i, o := range outcomes {
		if o != "" {
			missed = append(missed, chosen[i].mechanism+": "+o)
		}
	}
	if len(missed) > 0 {
		return fmt.Errorf("%d of %d rows are not noticed:\n%s", len(missed), len(chosen), strings.Join(missed, "\n"))
	}
	fmt.Printf("all %d rows are noticed\n", len(chosen))
	return nil
}

// check finds what each row changes.
func check(chosen []mutation) error {
	var errs []error
	for _, m := range chosen {
		_, _, err := m.apply()
		errs = append(errs, err)
		fmt.Printf("%-60s %s\n", m.mechanism, strings.Join(m.test, " "))
	}
	for _, group := range scored {
		for _, pkg := range group.packages {
			if _, err := new(scoring).subject(pkg, ""); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", named(pkg), err))
			}
		}
	}
	return errors.Join(errs...)
}

// try runs the test of a row without the mechanism. It returns nothing if the test fails then, as it
// should, and otherwise what is wrong.
func try(m mutation, folder string) string {
	path, text, err := m.apply()
	if err != nil {
		return err.Error()
	}
	overlay, err := writeOverlay(folder, path, text)
	if err != nil {
		return err.Error()
	}
	args := append([]string{
		"test", "-overlay=" + overlay, "-count=1", "-vet=off", "-gcflags=all=-dwarf=false", "-timeout=90s",
	}, m.test...)
	args = append(args, rapidFlags(m.folder)...)
	ctx, cancel := context.WithTimeout(context.Background(), rowTimeout)
	defer cancel()
	out, err := exec.CommandContext(ctx, "go", args...).CombinedOutput()
	said := string(out)
	switch {
	case err == nil && (strings.Contains(said, "no tests to run") || !strings.Contains(said, "ok")):
		return "its test is not there"
	case err == nil:
		return "NOT NOTICED"
	case strings.Contains(said, "[build failed]") || strings.Contains(said, "[setup failed]"):
		return "does not compile:\n" + said
	}
	return ""
}

// writeOverlay writes what go test reads in the place of a file.
func writeOverlay(folder, path, text string) (overlay string, err error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(folder, "changed.go"), filepath.Join(folder, "overlay.json")
	path, err = filepath.Abs(path)
	if err != nil {
		return "", err
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err != nil {
		return "", err
	}
	return overlay, errors.Join(os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(overlay, list, 0o600))
}
