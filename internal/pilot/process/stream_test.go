//go:build linux

package process

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"fairway/lib/sched"
)

// Of a whole output, the disk bounds what is kept: the rest of it stays free, and the end is there.
func TestTheDiskBoundsAWholeOutput(t *testing.T) {
	folder, limit := t.TempDir(), int64(1000)
	s := NewStream(sched.Default(), folder, limit)
	defer s.Close()
	free := int64(WholeReserve + 2*wholeStep)
	s.room = func(string) (int64, error) {
		free -= wholeStep // what was written since
		return free, nil
	}
	if err := s.Begin("1.out", true); err != nil {
		t.Fatal(err)
	}
	part := bytes.Repeat([]byte("x"), pipeRead)
	for range 3 * wholeStep / pipeRead {
		s.store(part)
	}
	s.store([]byte("last"))
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(folder, "1.out"))
	if err != nil {
		t.Fatal(err)
	}
	if most := wholeStep + int(limit) + len(CutNotice); len(text) < wholeStep || len(text) > most {
		t.Errorf("%d bytes are kept, at least %d and at most %d should", len(text), wholeStep, most)
	}
	if !bytes.Contains(text, []byte(CutNotice)) || !bytes.HasSuffix(text, []byte("xlast")) {
		t.Error("it has no notice, or not the end")
	}
}
