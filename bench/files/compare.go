package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// used is what a run needed.
type used struct {
	seconds, ratio, cpu             float64
	read, written, toDisk, diskMost float64 // bytes
}

// compare runs all programs in turns, and returns a row for each.
func compare(ctx context.Context, base string, w workflow, programs []program, rounds int) ([]row, error) {
	inputs, err := os.MkdirTemp(base, "fairway-files")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(inputs) }()
	if err := makeInputs(filepath.Join(inputs, "in"), w); err != nil {
		return nil, err
	}
	all := make([][]used, len(programs))
	for n := range rounds {
		round := make([]used, len(programs))
		yardstick := 0.0
		for at := range programs {
			i := (at + n) % len(programs) // what comes first may find another machine
			p := programs[i]
			if err := takeMemory(int64(w.files) * w.size); err != nil {
				return nil, err
			}
			if round[i], err = runIn(ctx, inputs, w, p); err != nil {
				return nil, fmt.Errorf("%s of %s: %w", w.name, p.name(), err)
			}
			if p == (gnuMake{}) {
				yardstick = round[i].seconds
			}
		}
		for i := range round {
			round[i].ratio = round[i].seconds / yardstick
			all[i] = append(all[i], round[i])
		}
	}
	rows := make([]row, len(programs))
	for i, p := range programs {
		rows[i] = rowOf(w.name, p.name(), w, all[i])
	}
	return rows, nil
}

// makeInputs makes files that no disk can compress.
func makeInputs(folder string, w workflow) error {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	random := rand.NewChaCha8([32]byte{1})
	piece := make([]byte, 1<<20)
	for n := range w.files {
		f, err := os.Create(filepath.Join(folder, strconv.Itoa(n)))
		if err != nil {
			return err
		}
		for left := w.size; left > 0 && err == nil; left -= int64(len(piece)) {
			_, _ = random.Read(piece) // never fails
			_, err = f.Write(piece[:min(left, int64(len(piece)))])
		}
		if closed := f.Close(); err == nil {
			err = closed
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// takeMemory has the machine get memory: twice what copies of all inputs need, since they may get other
// pages, but at most half of what is free. A virtual machine may have given back to its host what it
// did not use, and takes it again page by page. That costs up to three times as much as the copy, and
// whoever runs first is charged.
func takeMemory(bytes int64) error {
	var has unix.Sysinfo_t
	if err := unix.Sysinfo(&has); err != nil {
		return err
	}
	size := int(min(2*bytes, int64(has.Freeram)*int64(has.Unit)/2))
	memory, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_POPULATE)
	if err != nil {
		return err
	}
	return unix.Munmap(memory)
}

// runIn runs a program in a new folder that has links to the inputs, and makes sure that it has
// done its work.
func runIn(ctx context.Context, inputs string, w workflow, p program) (used, error) {
	folder, err := os.MkdirTemp(inputs, p.name())
	if err != nil {
		return used{}, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := linkInputs(inputs, folder, w); err != nil {
		return used{}, err
	}
	if err := p.describe(folder, w); err != nil {
		return used{}, err
	}
	command, err := p.command()
	if err != nil {
		return used{}, err
	}
	u, err := run(ctx, folder, command, !p.durable())
	if err != nil {
		return used{}, err
	}
	return u, complete(filepath.Join(folder, p.results()), w)
}

// linkInputs gives a folder the inputs.
func linkInputs(inputs, folder string, w workflow) error {
	if err := os.Mkdir(filepath.Join(folder, "in"), 0o755); err != nil {
		return err
	}
	for n := range w.files {
		name := filepath.Join("in", strconv.Itoa(n))
		if err := os.Link(filepath.Join(inputs, name), filepath.Join(folder, name)); err != nil {
			return err
		}
	}
	return nil
}

// complete returns an error unless all outputs are there that are results.
func complete(results string, w workflow) error {
	last := "out"
	if w.counted {
		last = "lines"
	}
	for n := range w.files {
		info, err := os.Stat(filepath.Join(results, last, strconv.Itoa(n)))
		if err != nil {
			return err
		}
		if info.Size() == 0 || !w.counted && info.Size() != w.size {
			return fmt.Errorf("%s/%s has %d bytes, of an input of %d", last, info.Name(), info.Size(), w.size)
		}
	}
	return nil
}
