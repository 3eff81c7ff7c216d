package main

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// program runs a workflow in a folder that has its inputs, in/0 and so on. Its outputs are
// out/0 and so on, and lines/0 where they are counted.
type program interface {
	name() string
	// describe writes what the program reads to know what is to be done.
	describe(folder string, w workflow) error
	// command runs it.
	command() ([]string, error)
	// results is the folder below which the outputs are when it has ended.
	results() string
	// durable reports whether what it has made is on disk when it has ended.
	durable() bool
}

type fairway struct{}

func (fairway) name() string    { return "fairway" }
func (fairway) results() string { return "results" }
func (fairway) durable() bool   { return true }

func (fairway) command() ([]string, error) {
	self, err := os.Executable()
	return []string{self, "run", "workflow.yaml", "--pilots", "2"}, err
}

func (fairway) describe(folder string, w workflow) error {
	text := `workflow: files
inputs:
  files: {files: "in/{n}", as: "in/{n}"}
steps:
  copy:
    each: in/{n}
    writes: out/{n}
    command: cp "$in" "$out"
`
	if w.counted {
		text += `  count:
    each: out/{n}
    writes: lines/{n}
    command: wc -l < "$in" > "$out"
`
	}
	return write(folder, "workflow.yaml", text)
}

type gnuMake struct{}

func (gnuMake) name() string               { return "make" }
func (gnuMake) results() string            { return "." }
func (gnuMake) durable() bool              { return false }
func (gnuMake) command() ([]string, error) { return []string{"make", "-s", "-j2"}, nil }

func (gnuMake) describe(folder string, w workflow) error {
	text := "inputs := $(wildcard in/*)\n"
	if w.counted {
		text += "all: $(inputs:in/%=lines/%)\n"
	} else {
		text += "all: $(inputs:in/%=out/%)\n"
	}
	text += "out/%: in/%\n\tcp $< $@\nlines/%: out/%\n\twc -l < $< > $@\n.SECONDARY:\n"
	return write(folder, "Makefile", text)
}

type snakemake struct{}

func (snakemake) name() string    { return "snakemake" }
func (snakemake) results() string { return "." }
func (snakemake) durable() bool   { return false }

func (snakemake) command() ([]string, error) {
	program := cmp.Or(os.Getenv("FAIRWAY_PEERS_SNAKEMAKE"), "snakemake")
	return []string{program, "--quiet", "all", "--cores", "2"}, nil
}

func (snakemake) describe(folder string, w workflow) error {
	last := "out"
	if w.counted {
		last = "lines"
	}
	var text strings.Builder
	fmt.Fprintf(&text, "rule all:\n    input: expand(%q, n=range(%d))\n", last+"/{n}", w.files)
	fmt.Fprintf(&text, "rule copy:\n    input: %q\n    output: %q\n    shell: %q\n", "in/{n}", "out/{n}",
		"cp {input} {output}")
	fmt.Fprintf(&text, "rule count:\n    input: %q\n    output: %q\n    shell: %q\n", "out/{n}", "lines/{n}",
		"wc -l < {input} > {output}")
	return write(folder, "Snakefile", text.String())
}

// write writes a description. The folders of outputs are made too: make makes none.
func write(folder, name, text string) error {
	for _, below := range []string{"out", "lines"} {
		if err := os.MkdirAll(filepath.Join(folder, below), 0o755); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600)
}
