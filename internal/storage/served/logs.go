package served

import (
	"context"
	"fmt"
	"io"
	"strings"

	"fairway/internal/storage"
)

// LogScheme is that of the PFNs of what attempts print, which pilots write only:
// "log:ATTEMPT.out".
const LogScheme = "log"

// LogPattern is that of the PFNs of what one attempt prints.
func LogPattern(attempt uint64) string { return fmt.Sprintf("%s:%d.*", LogScheme, attempt) }

// Logs is the element of LogScheme: the files in a folder.
func Logs(folder string) storage.Element {
	return logs{storage.Local(storage.Places{State: folder})}
}

type logs struct{ storage.Element }

// inside is the PFN of the element of the folder.
func inside(pfn string) string {
	return storage.StateScheme + ":" + strings.TrimPrefix(pfn, LogScheme+":")
}

func (l logs) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	return l.Element.Open(ctx, inside(pfn))
}

func (l logs) Get(ctx context.Context, pfn, path string) (int64, error) {
	return l.Element.Get(ctx, inside(pfn), path)
}

func (l logs) Put(ctx context.Context, path, pfn string) error {
	return l.Element.Put(ctx, path, inside(pfn))
}

func (l logs) Stat(ctx context.Context, pfn string) (storage.Info, error) {
	return l.Element.Stat(ctx, inside(pfn))
}

func (l logs) Remove(ctx context.Context, pfn string) error {
	return l.Element.Remove(ctx, inside(pfn))
}

func (l logs) List(ctx context.Context, pfn string) ([]storage.Entry, error) {
	return l.Element.List(ctx, inside(pfn))
}
