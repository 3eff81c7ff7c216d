package orwl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"fairway/lib/orwl/internal/checkpoint"
)

// NewFromFile makes a location whose first version is the contents of a regular file, such as an
// input of a job: one that has a size, and ends. A StartWith among the options keeps the others
// waiting until all are there.
func NewFromFile(name, path string, options ...Option) (*Location, error) {
	l, err := newFromFile(name, path, options)
	if err != nil {
		return nil, fmt.Errorf("making location %s: %w", name, err)
	}
	return l, nil
}

func newFromFile(name, path string, options []Option) (*Location, error) {
	info, err := os.Stat(path) // first, as opening a pipe would wait for who writes to it
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || int64(int(info.Size())) != info.Size() {
		return nil, fmt.Errorf("%s is no regular file that fits into memory: make a file of it first", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l, err := New(name, int(info.Size()), options...)
	if err != nil {
		return nil, err
	}
	l.Initialize(func(b []byte) { _, err = io.ReadFull(f, b) })
	if err == nil {
		if n, _ := f.Read(make([]byte, 1)); n > 0 {
			err = errors.New("it is longer")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%s had %d bytes: %w; somebody writes it, or it is none that is stored", path,
			info.Size(), err)
	}
	return l, nil
}

// WriteFile writes a version of a location to a file, such as an output of a job: that which a read
// sees which is requested now. It waits for it, and writers wait until it is written. The file is
// there as a whole or not at all.
func WriteFile(ctx context.Context, r Resource, path string) error {
	h := Handle{Name: "writing " + path}
	if len(h.Name) > MaxName {
		h.Name = "writing a file"
	}
	if err := h.ReadRequest(r); err != nil {
		return err
	}
	return DoReading(ctx, &h, func(data []byte) error {
		return checkpoint.WriteDurably(path, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		})
	})
}
