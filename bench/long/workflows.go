package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// kind is a workflow of any number of jobs.
type kind struct {
	name string
	make func(folder string, jobs int) error
	few  int    // jobs of the short one
	job  string // one that each of them has
	file string // that this job writes
}

const header = "workflow: long\n"

// manyFiles has one job for each of many files.
func manyFiles(folder string, jobs int) error {
	text := header + `
inputs:
  files: {files: "in/{number}.txt", as: "in/{number}.txt"}
steps:
  copy:
    each: in/{number}.txt
    writes: out/{number}.txt
    command: cp "$in" "$out"
`
	if err := os.Mkdir(filepath.Join(folder, "in"), 0o755); err != nil {
		return err
	}
	for i := range jobs {
		if err := os.WriteFile(
			filepath.Join(folder, "in", fmt.Sprintf("%d.txt", i)), fmt.Appendln(nil, i), 0o600,
		); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(text), 0o600)
}

// chain has steps of one job each; each reads what the one before wrote.
func chain(folder string, jobs int) error {
	var text strings.Builder
	text.WriteString(header + "inputs:\n  first: {files: 0.txt}\nsteps:\n")
	for i := 1; i <= jobs; i++ {
		fmt.Fprintf(&text, "  s%d:\n    each: %d.txt\n    writes: %d.txt\n    command: cp \"$in\" \"$out\"\n", i, i-1, i)
	}
	if err := os.WriteFile(filepath.Join(folder, "0.txt"), []byte("text\n"), 0o600); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(text.String()), 0o600)
}
