package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"fairway/lib/sched"
)

// TailBytes is how much of the end of standard error is looked at for the
// reason of a failure.
const TailBytes = 4096

// LogTail is how much of the limit of a log, and at most half of it, is for the end of what is printed.
const LogTail = 256 << 10

// Stream takes what one stream of an attempt prints, and keeps it in a file that
// has its name from the first byte on. The command has a pipe, and not the file:
// with that in its hands, `> /dev/stderr` would empty it. The pipe is used again
// by the next attempt, so one that prints nothing costs nothing.
type Stream struct {
	sched  *sched.Scheduler
	folder string                             // of the files
	limit  int64                              // of a file, in bytes
	room   func(folder string) (int64, error) // bytes that are free there

	Pipe    *os.File // the command's end of the pipe, nil before there is one
	read    int      // the other end
	stop    context.CancelFunc
	reading sync.WaitGroup

	mu     sync.Mutex // guards what follows, and reading
	buffer []byte
	name   string   // of the file of the attempt, empty between attempts
	file   *os.File // nil until something was printed
	whole  bool     // its file grows beyond the limit while the disk has room
	kept   int64    // bytes that its file may have
	size   int64    // bytes that were printed
	rest   []byte   // the end of what has no room in the beginning of the file, up to twice of what is kept of it
	last   []byte   // the end of what was printed, up to twice tailBytes
	err    error    // why what was printed is lost
}

// NewStream returns a stream that keeps at most limit bytes of each attempt in a file in
// folder: of what prints more, the beginning and the end.
func NewStream(s *sched.Scheduler, folder string, limit int64) *Stream {
	return &Stream{sched: s, folder: folder, limit: limit, room: freeSpace}
}

// freeSpace is how many bytes the file system of a folder has for others than root.
func freeSpace(folder string) (int64, error) {
	var disk unix.Statfs_t
	err := unix.Statfs(folder, &disk)
	return int64(disk.Bavail) * disk.Bsize, err
}

// What bounds the file of an attempt of which the whole output is kept: it takes no more of the disk
// when WholeReserve is free, which is looked at each time it has grown by wholeStep.
const (
	WholeReserve = 1 << 30
	wholeStep    = 16 << 20
)

// Begin readies the stream for an attempt. Where its whole output is to be kept, only the room on the
// disk bounds it.
func (s *Stream) Begin(name string, whole bool) error {
	if s.Pipe == nil {
		if err := s.open(); err != nil {
			return fmt.Errorf("pipe for the output of a job: %w", err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name, s.size, s.last, s.rest, s.err = name, 0, s.last[:0], nil, nil
	s.whole, s.kept = whole, s.limit
	return nil
}

func (s *Stream) open() error {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	if err := unix.SetNonblock(ends[0], true); err != nil {
		_ = unix.Close(ends[0])
		_ = unix.Close(ends[1])
		return err
	}
	s.buffer = make([]byte, pipeRead)
	s.read, s.Pipe = ends[0], os.NewFile(uintptr(ends[1]), "pipe")
	var ctx context.Context
	ctx, s.stop = context.WithCancel(context.Background())
	s.reading.Go(func() {
		for s.sched.WaitReadable(ctx, s.read) == nil {
			s.take()
		}
	})
	return nil
}

func (s *Stream) take() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range pipeReads {
		n, err := unix.Read(s.read, s.buffer)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if n <= 0 {
			return
		}
		s.store(s.buffer[:n])
	}
}

// pipeReads bounds what is read from a pipe at a time: more than it may hold, which
// is 64 KiB, unless a command makes it 1 MiB.
const (
	pipeRead  = 64 << 10
	pipeReads = 32
)

// store adds to the beginning of the file, and keeps the end of what has no room there.
func (s *Stream) store(printed []byte) {
	s.last = append(s.last, printed[max(0, len(printed)-TailBytes):]...)
	if beyond := len(s.last) - 2*TailBytes; beyond > 0 {
		s.last = append(s.last[:0], s.last[len(s.last)-TailBytes:]...)
	}
	if s.name == "" || s.err != nil {
		return
	}
	if s.file == nil {
		if s.file, s.err = CreateLog(filepath.Join(s.folder, s.name)); s.err != nil {
			return
		}
	}
	end := logEnd(s.limit)
	if s.whole && s.size+int64(len(printed)) > s.kept-end {
		s.grow()
	}
	room := min(max(0, s.kept-end-s.size), int64(len(printed)))
	s.size += int64(len(printed))
	if room > 0 {
		_, s.err = s.file.Write(printed[:room])
	}
	s.rest = append(s.rest, printed[room:]...)
	if int64(len(s.rest)) > 2*end {
		s.rest = append(s.rest[:0], s.rest[int64(len(s.rest))-end:]...)
	}
}

// grow gives a file further room, if the disk has it. Else it is as large as it may be.
func (s *Stream) grow() {
	free, err := s.room(s.folder)
	if s.whole = err == nil && free >= WholeReserve+wholeStep; s.whole {
		s.kept = s.size + wholeStep
	}
}

// logEnd is how much is kept of the end of what prints more than a limit.
func logEnd(limit int64) int64 { return min(limit/2, LogTail) }

// finish puts the end of what was printed into the file, after a notice if something is left out.
func (s *Stream) finish() error {
	if len(s.rest) == 0 || s.err != nil {
		return nil
	}
	if s.size > s.kept {
		s.rest = append([]byte(CutNotice), s.rest[int64(len(s.rest))-logEnd(s.limit):]...)
	}
	_, err := s.file.Write(s.rest)
	s.rest = nil
	return err
}

// CopyLog copies a file, of one that is larger than the limit the beginning and the end.
func CopyLog(to, from *os.File, limit int64) error {
	info, err := from.Stat()
	if err != nil || info.Size() <= limit {
		_, copying := io.Copy(to, io.LimitReader(from, limit))
		return errors.Join(err, copying)
	}
	end := logEnd(limit)
	if _, err = io.Copy(to, io.LimitReader(from, limit-end)); err != nil {
		return err
	}
	if _, err = to.WriteString(CutNotice); err != nil {
		return err
	}
	_, err = io.Copy(to, io.NewSectionReader(from, info.Size()-end, end))
	return err
}

// CreateLog makes a file; what a job has put there before goes.
func CreateLog(path string) (*os.File, error) {
	const how = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	f, err := os.OpenFile(path, how, 0o644)
	if errors.Is(err, fs.ErrExist) && os.Remove(path) == nil {
		f, err = os.OpenFile(path, how, 0o644)
	}
	return f, err
}

// CutNotice stands where the middle of what was printed is left out.
const CutNotice = "\n[fairway: the middle of the output is left out here, beyond the limit of what is kept]\n"

// End ends an attempt's use of the stream, when its processes have ended. An error
// says that what it printed is not, or not all, in the file.
func (s *Stream) End() error {
	if s.Pipe == nil {
		return nil
	}
	s.take()
	s.mu.Lock()
	defer s.mu.Unlock()
	// The description is shared with the commands, which may have changed it.
	_ = unix.SetNonblock(int(s.Pipe.Fd()), false)
	s.name = ""
	err := s.err
	if s.file != nil {
		err = errors.Join(err, s.finish(), s.file.Close())
		s.file = nil
	}
	return err
}

// Close ends the stream; a process that still has its pipe cannot write to it any
// more.
func (s *Stream) Close() {
	if s.Pipe == nil {
		return
	}
	s.stop()
	s.reading.Wait()
	_ = s.End()
	_ = s.Pipe.Close()
	_ = unix.Close(s.read)
	s.Pipe = nil
}

// Tail returns the end of what was printed so far.
func (s *Stream) Tail() string {
	if s.Pipe == nil {
		return ""
	}
	s.take()
	s.mu.Lock()
	defer s.mu.Unlock()
	return string(s.last[max(0, len(s.last)-TailBytes):])
}
