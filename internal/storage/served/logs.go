package served

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"fairway/internal/storage"
)

// LogScheme is that of the PFNs of what attempts print, which pilots write only:
// "log:ATTEMPT.out".
const LogScheme = "log"

// LogPattern is that of the PFNs of what one attempt prints.
func LogPattern(attempt uint64) string { return fmt.Sprintf("%s:%d.*", LogScheme, attempt) }

// LiveEnding ends the name of a file with what has come of a stream of an attempt that runs.
// It goes when the whole stream comes.
const LiveEnding = ".live"

// LogPiece is the PFN of what a stream of an attempt has from some byte on. It is added to
// what came before.
func LogPiece(attempt uint64, stream string, from int64) string {
	return fmt.Sprintf("%s:%d.%s%s%d", LogScheme, attempt, stream, pieceMark, from)
}

const pieceMark = "@"

// Logs is the element of LogScheme: the files in a folder.
func Logs(folder string) storage.Element {
	return &logs{Element: storage.Local(storage.Places{State: folder}), folder: folder}
}

type logs struct {
	storage.Element
	folder string
	mu     sync.Mutex // held while a piece is added
}

// inside is the PFN of the element of the folder.
func inside(pfn string) string {
	return storage.StateScheme + ":" + strings.TrimPrefix(pfn, LogScheme+":")
}

func (l *logs) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	return l.Element.Open(ctx, inside(pfn))
}

func (l *logs) Get(ctx context.Context, pfn, path string) (int64, error) {
	return l.Element.Get(ctx, inside(pfn), path)
}

func (l *logs) Put(ctx context.Context, path, pfn string) error {
	name := strings.TrimPrefix(pfn, LogScheme+":")
	if stream, from, isPiece := strings.Cut(name, pieceMark); isPiece {
		return l.add(path, stream, from)
	}
	err := l.Element.Put(ctx, path, inside(pfn))
	if err == nil && filepath.IsLocal(name) {
		_ = os.Remove(filepath.Join(l.folder, name+LiveEnding))
	}
	return err
}

// add adds a piece to what has come of a stream. One that has come before changes nothing.
func (l *logs) add(path, stream, from string) error {
	at, err := strconv.ParseInt(from, 10, 64)
	if err != nil || at < 0 || strings.Contains(stream, "/") || !filepath.IsLocal(stream) {
		return fmt.Errorf("%s%s%s is no piece of a log: %w", stream, pieceMark, from, fs.ErrInvalid)
	}
	piece, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = piece.Close() }()
	l.mu.Lock()
	defer l.mu.Unlock()
	live, err := os.OpenFile(filepath.Join(l.folder, stream+LiveEnding), os.O_CREATE|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = live.Close() }()
	switch info, err := live.Stat(); {
	case err != nil:
		return err
	case info.Size() > at:
		return nil
	case info.Size() < at:
		return fmt.Errorf("a piece of a log from byte %d on, and %d bytes are here: %w", at, info.Size(), fs.ErrInvalid)
	}
	if _, err := live.Seek(at, io.SeekStart); err != nil {
		return err
	}
	_, err = io.Copy(live, piece)
	return err
}

func (l *logs) Stat(ctx context.Context, pfn string) (storage.Info, error) {
	return l.Element.Stat(ctx, inside(pfn))
}

func (l *logs) Remove(ctx context.Context, pfn string) error {
	return l.Element.Remove(ctx, inside(pfn))
}

func (l *logs) List(ctx context.Context, pfn string) ([]storage.Entry, error) {
	return l.Element.List(ctx, inside(pfn))
}
