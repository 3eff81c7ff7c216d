package stage

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"fairway/internal/beneath"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// naming remembers of what was stored whether the name is that of the file alone.
type naming struct {
	storage.Element
	own map[string]bool // by PFN
}

func (n naming) Put(ctx context.Context, path, pfn string) error {
	n.own[pfn] = storage.HasOwnName(ctx)
	return n.Element.Put(ctx, path, pfn)
}

// An output is stored under a name that has the attempt in it, and the element is told so: it
// may need fewer requests for it.
func TestOutputsAreStoredUnderNamesOfTheirOwn(t *testing.T) {
	ar := sharingArea(t)
	stored := naming{ar.Storage, map[string]bool{}}
	ar.Storage, ar.Prefix = stored, "file:"+t.TempDir()+"/"
	sandbox := t.TempDir()
	writeText(t, filepath.Join(sandbox, "x"), "text")
	dir, err := beneath.Open(sandbox)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for _, attempt := range []uint64{1<<32 + 7, 1<<32 + 8} {
		a := &Execution{
			Assignment: &wire.Assignment{Attempt: attempt}, Ctx: t.Context(), Slot: &Slot{dir: dir}, In: &Inputs{},
		}
		out, err := ar.store(a, written{&wire.OutputFile{Lfn: "x", Version: 1}, "x", "x"})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(out.GetPfn()[len("file:"):]); err != nil || string(text) != "text" ||
			!stored.own[out.GetPfn()] {
			t.Errorf("%s: %q, a name of its own: %v, error %v", out.GetPfn(), text, stored.own[out.GetPfn()], err)
		}
	}
	if len(stored.own) != 2 {
		t.Errorf("two attempts have stored under %v", stored.own)
	}
}
