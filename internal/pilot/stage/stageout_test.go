package stage

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"fairway/internal/beneath"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// An output is stored under a name that has the attempt in it.
func TestOutputsAreStoredUnderNamesOfTheirOwn(t *testing.T) {
	ar := sharingArea(t)
	stored := map[string]bool{}
	ar.Prefix = "file:" + t.TempDir() + "/"
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
		if text, err := os.ReadFile(out.GetPfn()[len("file:"):]); err != nil || string(text) != "text" {
			t.Errorf("%s: %q, error %v", out.GetPfn(), text, err)
		}
		stored[out.GetPfn()] = true
	}
	if len(stored) != 2 {
		t.Errorf("two attempts have stored under %v", stored)
	}
}

// Of an attempt with many outputs it is told how far it has come, from the first on.
func TestManyOutputsAreCounted(t *testing.T) {
	for _, n := range []int{ManyOutputs - 1, ManyOutputs} {
		ar := slotArea(t)
		ar.Storage, ar.Prefix = storage.Local(storage.Roots{}), "file:"+t.TempDir()+"/"
		var stored, of []int64
		ar.Wake = func() {
			a, b := ar.Storing()
			stored, of = append(stored, a), append(of, b)
		}
		a := &Execution{
			Assignment: &wire.Assignment{Attempt: 1<<32 + 7}, Ctx: t.Context(), In: &Inputs{}, Payload: &wire.Payload{},
			Result: &wire.Result{Usage: &wire.Usage{}},
		}
		s, err := ar.TakeSlot(a)
		if err != nil {
			t.Fatal(err)
		}
		a.Slot = s
		for i := range n {
			name := fmt.Sprint("o", i)
			a.Outputs = append(a.Outputs, &wire.OutputFile{Lfn: name, Version: 1})
			writeText(t, filepath.Join(s.Folder, name), "x")
		}
		if err := ar.StageOut(a); err != nil {
			t.Fatal(err)
		}
		if len(a.Result.GetOutputs()) != n || a.Result.GetUsage().GetBytesWritten() != int64(n) {
			t.Errorf("%d outputs were stored", len(a.Result.GetOutputs()))
		}
		told := slices.Equal(of, []int64{int64(n)}) && slices.Equal(stored, []int64{0})
		if told != (n == ManyOutputs) {
			t.Errorf("of %d it is told that %v of %v are stored", n, stored, of)
		}
		if a, b := ar.Storing(); a != 0 || b != 0 {
			t.Errorf("afterwards %d of %d are stored", a, b)
		}
		ar.Pass(s, nil)
	}
}
