package stage

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"fairway/internal/beneath"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// ending is an element of which the first read has the attempt end that reads.
type ending struct {
	storage.Element
	end   context.CancelFunc
	reads int
}

func (e *ending) Get(ctx context.Context, pfn, path string) (int64, error) {
	e.reads++
	defer e.end()
	return e.Element.Get(ctx, pfn, path)
}

// An attempt that is to end while its inputs come in ends after the file that is just coming,
// however many are left.
func TestAnAttemptEndsBetweenItsInputs(t *testing.T) {
	ar, sandbox := sharingArea(t), t.TempDir()
	ctx, end := context.WithCancel(t.Context())
	element := &ending{Element: ar.Storage, end: end}
	ar.Storage, ar.Sharing, ar.Cache = element, nil, nil
	dir, err := beneath.Open(sandbox)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	a := &Execution{
		Assignment: &wire.Assignment{}, Ctx: ctx, Result: &wire.Result{Usage: &wire.Usage{}},
		Slot: &Slot{Folder: sandbox, dir: dir},
	}
	stored := t.TempDir()
	for _, lfn := range []string{"x", "y", "z"} {
		writeText(t, filepath.Join(stored, lfn), lfn)
		a.Inputs = append(a.Inputs, &wire.InputFile{
			File: &wire.FileRef{Lfn: lfn, Version: 1}, Pfn: "file:" + filepath.Join(stored, lfn),
		})
	}
	if err := NewInputs(ar, a).StageIn(); !errors.Is(err, context.Canceled) {
		t.Error("the attempt goes on:", err)
	}
	if element.reads != 1 {
		t.Errorf("%d files were read, and the attempt was to end at the first", element.reads)
	}
}
