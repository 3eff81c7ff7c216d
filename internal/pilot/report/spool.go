package report

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"

	"fairway/internal/disk"
	"fairway/internal/wire"
)

// SpoolFolder is the name of the folder for results that the TaskQueue could not
// be told, in SandboxDir unless Config says another place.
const SpoolFolder = "spool"

// MaxSpooled bounds the results in a spool. Others are told only if the pilot
// lives until the TaskQueue is back.
const MaxSpooled = 10_000

const spoolEnding = ".result"

// Spool keeps results on disk while the TaskQueue does not answer: a pilot that
// ends meanwhile has not computed in vain. Any pilot that finds one tells it,
// and several may: the TaskQueue takes a result once. A result is there complete
// or not at all, for its user only.
type Spool struct {
	folder string
	log    *slog.Logger

	mu      sync.Mutex              // guards what follows
	kept    map[uint64]*wire.Report // by attempt; to be on disk until they are told
	written map[uint64]bool         // those that are
	writing bool                    // somebody writes the others
}

// Spooled returns the attempts of which a success is in the spool of a folder
// for sandboxes, where no pilot has told it yet. It changes nothing, and may be called
// by anyone at any time.
func Spooled(sandboxDir string) (attempts []*wire.AttemptRef) {
	folder := filepath.Join(sandboxDir, SpoolFolder)
	entries, _ := os.ReadDir(folder) // a spool that is not there or cannot be read tells nothing
	for _, e := range entries {
		text, err := readSpooled(filepath.Join(folder, e.Name()))
		if r := new(wire.Report); err == nil && proto.Unmarshal(text, r) == nil &&
			r.GetResult().GetOutcome() == wire.Outcome_OUTCOME_SUCCEEDED {
			attempts = append(attempts, &wire.AttemptRef{
				Run: r.GetResult().GetRun(), Job: r.GetResult().GetJob(), Attempt: r.GetResult().GetAttempt(),
			})
		}
	}
	return attempts
}

// NewSpool returns the spool in a folder, which need not be there.
func NewSpool(folder string, log *slog.Logger) *Spool {
	return &Spool{folder: folder, log: log, kept: map[uint64]*wire.Report{}, written: map[uint64]bool{}}
}

func (s *Spool) path(attempt uint64) string {
	return filepath.Join(s.folder, fmt.Sprintf("%016x%s", attempt, spoolEnding))
}

// Found reads the results that pilots have left. What cannot be read is left
// alone, and what is no result is removed.
func (s *Spool) Found() (results []*wire.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entries, err := os.ReadDir(s.folder)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("results that other pilots may have left cannot be read", "error", err)
		}
		return nil
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), spoolEnding) || len(results) == MaxSpooled {
			continue
		}
		path := filepath.Join(s.folder, e.Name())
		text, err := readSpooled(path)
		if err != nil {
			s.log.Warn("a result that a pilot has left cannot be read", "error", err)
			continue
		}
		r := new(wire.Report)
		if err := proto.Unmarshal(text, r); err != nil || s.path(r.GetResult().GetAttempt()) != path {
			s.log.Warn("what stands in the place of a result is none, and is removed", "file", path)
			_ = os.Remove(path)
			continue
		}
		s.kept[r.GetResult().GetAttempt()], s.written[r.GetResult().GetAttempt()] = r, true
		results = append(results, r)
	}
	return results
}

func readSpooled(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > MaxReported {
		return nil, fmt.Errorf("%s is no file of at most %d bytes", path, MaxReported)
	}
	text := make([]byte, info.Size())
	n, err := file.ReadAt(text, 0)
	if n == len(text) {
		err = nil
	}
	return text[:n], err
}

// Put has results kept. It reports whether the caller is to call write, which
// takes time.
func (s *Spool) Put(results []*wire.Report) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range results {
		if len(s.kept) < MaxSpooled {
			s.kept[r.GetResult().GetAttempt()] = r
		}
	}
	if s.writing || len(s.kept) == len(s.written) {
		return false
	}
	s.writing = true
	return true
}

// Write brings to disk what was put, until nothing is left.
func (s *Spool) Write() {
	for r := s.next(); r != nil; r = s.next() {
		err := s.store(r)
		if err != nil {
			s.log.Warn("a result is told only if the pilot lives until the TaskQueue is back", "attempt",
				r.GetResult().GetAttempt(), "error", err)
		}
		s.mu.Lock()
		if s.kept[r.GetResult().GetAttempt()] == nil {
			_ = os.Remove(s.path(r.GetResult().GetAttempt())) // it was told meanwhile
		} else {
			s.written[r.GetResult().GetAttempt()] = true // or never will be
		}
		s.mu.Unlock()
	}
}

// next is a result to write, nil if there is none.
func (s *Spool) next() *wire.Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.kept {
		if !s.written[id] {
			return r
		}
	}
	s.writing = false
	return nil
}

func (s *Spool) store(r *wire.Report) error {
	text, err := proto.Marshal(r)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return err
	}
	file, err := disk.CreateUnnamed(s.folder, 0, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Write(text); err != nil {
		return err
	}
	if err := file.Sync(); err != nil {
		return err
	}
	if err := file.Link(s.path(r.GetResult().GetAttempt())); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return disk.Sync(s.folder)
}

// Told forgets results that are recorded.
func (s *Spool) Told(results []*wire.Report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) == 0 {
		return
	}
	for _, r := range results {
		id := r.GetResult().GetAttempt()
		if s.written[id] {
			if err := os.Remove(s.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				s.log.Warn("a result that was told could not be removed", "error", err)
			}
		}
		delete(s.kept, id)
		delete(s.written, id)
	}
}
