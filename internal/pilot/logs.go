package pilot

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
)

// tailBytes is how much of the end of standard error is looked at for the
// reason of a failure.
const tailBytes = 4096

// logFile takes what one stream of an attempt prints. The command writes into
// it directly. It has no name until something is printed by an attempt that
// ended or runs for a while, and is used again by the next attempt if nothing
// was: a file of its own for each attempt would cost more than a short job.
type logFile struct {
	folder string
	file   *disk.Unnamed
	name   string // empty while it has none
}

// open makes sure that there is a file.
func (l *logFile) open() error {
	if l.file != nil {
		return nil
	}
	f, err := disk.CreateUnnamed(l.folder, os.O_APPEND, 0o644)
	if err != nil {
		return fmt.Errorf("file for the output of a job: %w", err)
	}
	l.file, l.name = f, ""
	return nil
}

func (l *logFile) size() int64 {
	info, err := l.file.Stat()
	if err != nil {
		return 0
	}
	return info.Size()
}

// show gives the file its name, so that it can be read while the attempt runs.
func (l *logFile) show(name string) error {
	if l.name != "" {
		return nil
	}
	path := filepath.Join(l.folder, name)
	if err := l.file.Link(path); err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("keep the output of the job as %s: %w", path, err)
	}
	l.name = name
	return nil
}

// cut keeps the first limit bytes and puts a notice after them. What a running
// command prints later is cut again.
func (l *logFile) cut(limit int64) {
	if l.size() <= limit+int64(len(cutNotice)) {
		return
	}
	if unix.Ftruncate(int(l.file.Fd()), limit) == nil {
		_, _ = l.file.WriteString(cutNotice)
	}
}

// cutNotice stands where output was cut off.
const cutNotice = "\n[fairway: the output was cut off here, at the limit of what is kept]\n"

// keep ends an attempt's use of the file: one with contents gets its name and
// is closed, an empty one is used again.
func (l *logFile) keep(name string, limit int64) error {
	if l.file == nil {
		return nil
	}
	size := l.size()
	if size == 0 && l.name == "" {
		return nil
	}
	var err error
	switch {
	case size == 0:
		err = os.Remove(filepath.Join(l.folder, l.name))
	default:
		l.cut(limit)
		err = l.show(name)
	}
	l.close()
	return err
}

func (l *logFile) close() {
	if l.file != nil {
		_ = l.file.Close()
		l.file, l.name = nil, ""
	}
}

// tail returns the end of what was printed.
func (l *logFile) tail() string {
	if l.file == nil {
		return ""
	}
	at := max(0, l.size()-tailBytes)
	buffer := make([]byte, tailBytes)
	n, _ := l.file.ReadAt(buffer, at)
	return strings.ToValidUTF8(string(buffer[:n]), "?")
}
