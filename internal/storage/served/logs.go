package served

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"fairway/internal/logical"
	"fairway/internal/storage"
)

// LogScheme is that of the PFNs of what attempts print, which pilots write only:
// "log:ATTEMPT.out".
const LogScheme = "log"

// OutputPattern is the pattern of package logical of the PFNs that an attempt may give an
// output, of which the name may be a pattern itself.
func OutputPattern(prefix, lfn string, isPattern bool, version uint32, attempt uint64) string {
	prefix = logical.Escape(prefix)
	if !isPattern {
		lfn = logical.Escape(lfn)
	}
	return storage.OutputPFN(prefix, lfn, version, attempt)
}

// CheckpointPattern is the pattern of the PFNs that an attempt may give the folder in which it saves
// its state, each time that it is stored: the versions differ.
func CheckpointPattern(prefix, lfn string, attempt uint64) string {
	first := logical.Escape(storage.OutputPFN(prefix, lfn, 0, attempt))
	return strings.TrimSuffix(first, fmt.Sprintf(".v0.a%d", attempt)) + fmt.Sprintf(".v*.a%d", attempt)
}

// LogPattern is the pattern of the PFNs of what one attempt prints.
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

// errGap is wrong with a piece of which the server lacks what comes before.
var errGap = errors.New("what comes before this piece of a log is not here")

// IsGap reports whether an element of pilots could not add a piece since the server lacks what
// comes before: the stream has to be sent from its beginning.
func IsGap(err error) bool {
	var status *storage.StatusError
	return errors.As(err, &status) && status.Status == http.StatusRequestedRangeNotSatisfiable
}

// Logs is the element of LogScheme: the files in a folder.
func Logs(folder string) storage.Element {
	return &logs{Element: storage.Local(storage.Roots{State: folder}), folder: folder}
}

type logs struct {
	storage.Element
	folder string
	mu     sync.Mutex // held while a piece is added, and while pieces are removed
}

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
	if !isLog(name, "out", "err", "log") {
		return fmt.Errorf("%s is no log of an attempt: %w", strconv.Quote(name), fs.ErrInvalid)
	}
	if err := l.Element.Put(ctx, path, inside(pfn)); err != nil {
		return err
	}
	l.mu.Lock() // a piece that comes later finds the whole
	defer l.mu.Unlock()
	_ = os.Remove(filepath.Join(l.folder, name+LiveEnding))
	return nil
}

func isLog(name string, kinds ...string) bool {
	number, kind, _ := strings.Cut(name, ".")
	attempt, err := strconv.ParseUint(number, 10, 64)
	return err == nil && number == strconv.FormatUint(attempt, 10) && slices.Contains(kinds, kind)
}

// add adds a piece to what has come of a stream. What of it has come before stays as it is.
// Once the whole is there, no piece is taken.
func (l *logs) add(path, stream, from string) error {
	at, err := strconv.ParseInt(from, 10, 64)
	if err != nil || at < 0 || !isLog(stream, "out", "err") {
		return fmt.Errorf("%s is no piece of a log: %w", strconv.Quote(stream+pieceMark+from), fs.ErrInvalid)
	}
	piece, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = piece.Close() }()
	l.mu.Lock()
	defer l.mu.Unlock()
	whole := filepath.Join(l.folder, stream)
	if _, err := os.Lstat(whole); err == nil {
		return fmt.Errorf("%s is complete: %w", stream, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	flags := os.O_WRONLY | unix.O_NOFOLLOW
	if at == 0 {
		flags |= os.O_CREATE
	}
	live, err := os.OpenFile(whole+LiveEnding, flags, 0o600)
	if errors.Is(err, fs.ErrNotExist) {
		return errGap
	}
	if err != nil {
		return err
	}
	return errors.Join(appendPiece(live, at, piece), live.Close())
}

// appendPiece appends what a file lacks of a piece that begins at a byte of it. After an error
// the file is as it was.
func appendPiece(live *os.File, at int64, piece io.Reader) error {
	size, err := live.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if size < at {
		return errGap
	}
	if _, err := io.CopyN(io.Discard, piece, size-at); errors.Is(err, io.EOF) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := io.Copy(live, piece); err != nil {
		return errors.Join(err, live.Truncate(size))
	}
	return nil
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
