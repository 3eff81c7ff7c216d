package checkpoint

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// storeOwn has task 0 store a part that is a text.
func storeOwn(v *Vault, iteration int, text string) error {
	return v.StoreOwn(iteration, func(w io.Writer) (sum Sum, err error) {
		sum.Add([]byte(text))
		_, err = io.WriteString(w, text)
		return sum, err
	})
}

// send sends a part as task 1, in pieces.
func send(v *Vault, iteration uint64, pieces ...string) error {
	var part Incoming
	offset := uint64(0)
	for _, p := range pieces {
		give := Message{Kind: GivePiece, Iteration: iteration, Offset: offset, Data: []byte(p)}
		if _, err := v.Answer(1, &part, give); err != nil {
			return err
		}
		offset += uint64(len(p))
	}
	gave := Message{Kind: GavePart, Iteration: iteration}
	gave.SetPart(part.sum)
	_, err := v.Answer(1, &part, gave)
	return err
}

func names(t *testing.T, folder string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	must(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

// A checkpoint counts when the parts of all tasks are there. Those before it go, and a vault that is opened anew
// goes on from it.
func TestTheLastWholeCheckpointCounts(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "vault")
	v, whole, err := OpenVault(folder, 2)
	must(t, err)
	if whole != nil {
		t.Errorf("a new vault has %+v", whole)
	}
	state := func(want uint64, size int) {
		t.Helper()
		a, err := v.Answer(1, nil, Message{Kind: AskState})
		if err != nil || a.Iteration != want || a.Size != uint64(size) {
			t.Errorf("it goes on from iteration %d with %d bytes, %v; want %d, %d", a.Iteration, a.Size, err, want, size)
		}
	}
	must(t, storeOwn(v, 5, "own"))
	state(0, 0)
	must(t, send(v, 5, "ab", "c", "d"))
	state(5, 4)
	w, err := ReadManifest(folder, 2)
	must(t, err)
	var own, sent Sum
	own.Add([]byte("own"))
	sent.Add([]byte("abcd"))
	if w.Iteration != 5 || !slices.Equal(w.Parts, []Sum{own, sent}) || !slices.Equal(w.Files, []string{"5/0", "5/1"}) {
		t.Errorf("the manifest is %+v", w)
	}
	for offset, want := range map[uint64]string{0: "abcd", 2: "cd", 4: "", 9: "", 1 << 63: ""} {
		if a, err := v.Answer(1, nil, Message{Kind: AskPiece, Offset: offset}); err != nil || string(a.Data) != want {
			t.Errorf("at %d there is %q, %v; want %q", offset, a.Data, err, want)
		}
	}

	must(t, storeOwn(v, 6, "behind"))
	must(t, send(v, 7, "later"))
	must(t, storeOwn(v, 7, "own7"))
	state(7, 5)
	if got := names(t, folder); !slices.Equal(got, []string{"7", ManifestName}) || v.open[6] != nil {
		t.Errorf("left are %q, and open %v", got, v.open)
	}
	if err := storeOwn(v, 7, "again"); err == nil {
		t.Error("a checkpoint that is whole is stored again")
	}
	must(t, os.WriteFile(PartPath(folder, 7, 0), []byte("own7"), 0o600))

	_, whole, err = OpenVault(folder, 2)
	must(t, err)
	if whole == nil || whole.Iteration != 7 || whole.Sum.Size != 4 {
		t.Fatalf("a vault that is opened anew has %+v", whole)
	}
	r, err := whole.Open()
	must(t, err)
	defer r.Close()
	if text, err := io.ReadAll(r); err != nil || string(text) != "own7" {
		t.Errorf("its part is %q, %v", text, err)
	}
}

// Pieces come one behind the other, and a part is as it was sent: what is not so is refused, and forgotten.
func TestPiecesThatDoNotFollow(t *testing.T) {
	v, _, err := OpenVault(t.TempDir(), 2)
	must(t, err)
	give := func(iteration, offset uint64) Message {
		return Message{Kind: GivePiece, Iteration: iteration, Offset: offset, Data: []byte("ab")}
	}
	gave := func(iteration uint64, text string) (q Message) {
		var sum Sum
		sum.Add([]byte(text))
		q = Message{Kind: GavePart, Iteration: iteration}
		q.SetPart(sum)
		return q
	}
	for name, c := range map[string]struct {
		before  []Message
		message Message
		refused string
	}{
		"a piece behind others":     {[]Message{give(3, 0)}, give(3, 2), ""},
		"a piece again":             {[]Message{give(3, 0)}, give(3, 0), ""},
		"a piece without others":    {nil, give(3, 2), "comes where none was expected"},
		"a piece with a gap":        {[]Message{give(3, 0)}, give(3, 4), "comes where none was expected"},
		"a piece that was there":    {[]Message{give(3, 0), give(3, 2)}, give(3, 2), "comes where none was expected"},
		"a piece of another one":    {[]Message{give(3, 0)}, give(4, 2), "comes where none was expected"},
		"a piece of none":           {nil, give(0, 0), "a part of iteration 0"},
		"the end of what was sent":  {[]Message{give(3, 0), give(3, 2)}, gave(3, "abab"), ""},
		"an end of nothing":         {nil, gave(3, ""), "nothing was sent of iteration 3"},
		"the end of another one":    {[]Message{give(3, 0)}, gave(4, "ab"), "nothing was sent of iteration 4"},
		"an end of iteration 0":     {[]Message{give(3, 0)}, gave(0, "ab"), "a part of iteration 0"},
		"another part":              {[]Message{give(3, 0)}, gave(3, "ac"), ErrDamaged.Error()},
		"no question":               {nil, Message{Kind: 99}, "there is no question 99"},
		"a part that is not stored": {nil, Message{Kind: AskPiece}, ErrDamaged.Error()},
	} {
		var part Incoming
		for _, q := range c.before {
			_, err := v.Answer(1, &part, q)
			must(t, err)
		}
		_, err := v.Answer(1, &part, c.message)
		if c.refused == "" {
			must(t, err)
		} else if err == nil || !strings.Contains(err.Error(), c.refused) {
			t.Errorf("%s: %v; want %s", name, err, c.refused)
		}
		ended := c.message.Kind == GavePart && (c.refused == "" || c.refused == ErrDamaged.Error())
		if ended && part.file != nil {
			t.Errorf("%s: the part is kept", name)
		}
		part.Drop()
		if part.file != nil {
			t.Errorf("%s: what was dropped is there", name)
		}
	}
}

// A file is closed when its part begins anew, or cannot be written.
func TestPartsThatBeginAnewAreClosed(t *testing.T) {
	v, _, err := OpenVault(t.TempDir(), 2)
	must(t, err)
	var part Incoming
	must(t, v.take(1, &part, Message{Iteration: 1, Data: []byte("a")}))
	first := part.file
	must(t, v.take(1, &part, Message{Iteration: 1, Data: []byte("b")}))
	if _, err := first.Write([]byte("c")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("the first file is open: %v", err)
	}
	must(t, part.file.Close())
	err = v.take(1, &part, Message{Iteration: 1, Offset: 1, Data: []byte("c")})
	if !errors.Is(err, os.ErrClosed) || part.file != nil || part.iteration != 0 {
		t.Errorf("%v, and left is %+v", err, part)
	}
}

// Where the folder is none, or has gone, whoever stores hears of it.
func TestFoldersThatAreNone(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	must(t, os.WriteFile(file, nil, 0o600))
	noted := filepath.Join(folder, "noted")
	must(t, os.MkdirAll(filepath.Join(noted, ManifestName), 0o700))
	damaged := filepath.Join(folder, "damaged")
	must(t, os.Mkdir(damaged, 0o700))
	must(t, os.WriteFile(filepath.Join(damaged, ManifestName), []byte("{"), 0o600))
	gone := &Vault{folder: filepath.Join(folder, "gone"), tasks: 1, open: map[int]map[int]Sum{}}
	below := &Vault{folder: file, tasks: 1, open: map[int]map[int]Sum{}}
	full := &Vault{folder: noted, tasks: 1, open: map[int]map[int]Sum{}}
	open := func(folder string) func() error {
		return func() error { _, _, err := OpenVault(folder, 1); return err }
	}
	broken := errors.New("broken")
	for name, do := range map[string]func() error{
		"a vault below a file":        open(filepath.Join(file, "vault")),
		"a manifest that is a folder": open(noted),
		"a damaged manifest":          open(damaged),
		"tidying":                     func() error { return gone.tidy(0) },
		"forgetting":                  func() error { return gone.forget(1) },
		"declaring":                   func() error { return gone.declare(Manifest{}) },
		"declaring over a folder":     func() error { return full.declare(Manifest{}) },
		"arriving":                    func() error { return gone.Arrived(1, 0, Sum{}) },
		"its own part":                func() error { return storeOwn(below, 1, "x") },
		"a piece": func() error {
			return below.take(0, new(Incoming), Message{Iteration: 1, Data: []byte("x")})
		},
		"an own part that fails": func() error {
			v, _, err := OpenVault(filepath.Join(folder, "new"), 1)
			must(t, err)
			err = v.StoreOwn(1, func(io.Writer) (Sum, error) { return Sum{Size: 1}, broken })
			if v.whole.Iteration != 0 {
				t.Error("a part that failed counts")
			}
			return err
		},
	} {
		if err := do(); err == nil {
			t.Errorf("%s succeeds", name)
		}
	}
	if got := names(t, noted); !slices.Equal(got, []string{ManifestName}) {
		t.Errorf("left are %q", got)
	}
	if _, err := (&Vault{folder: folder}).opener(0)(); !errors.Is(err, ErrDamaged) {
		t.Errorf("a part that is not there: %v", err)
	}
	if err := open(damaged)(); !strings.Contains(err.Error(), damaged) {
		t.Errorf("%v names no folder", err)
	}
}

// What cannot be made durable is not there, and files are for all whom the umask lets.
func TestWhatIsWrittenIsDurableOrNotThere(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "file")
	broken := errors.New("broken")
	if err := WriteDurably(path, func(io.Writer) error { return broken }); !errors.Is(err, broken) {
		t.Error(err)
	}
	if err := WriteDurably(filepath.Join(folder, "none", "file"), func(io.Writer) error { return nil }); err == nil {
		t.Error("a file stands in a folder that is not there")
	}
	if got := names(t, folder); got != nil {
		t.Errorf("left are %q", got)
	}
	must(t, WriteDurably(path, func(w io.Writer) error { _, err := io.WriteString(w, "text"); return err }))
	if text, err := os.ReadFile(path); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	must(t, os.WriteFile(path+".plain", nil, 0o666))
	must(t, os.Mkdir(filepath.Join(folder, "plain"), 0o777))
	f, err := createPart(folder, 3, 0)
	must(t, err)
	must(t, closePart(f, nil))
	for _, pair := range [][2]string{{"file", "file.plain"}, {"3", "plain"}} {
		one, err := os.Stat(filepath.Join(folder, pair[0]))
		must(t, err)
		other, err := os.Stat(filepath.Join(folder, pair[1]))
		must(t, err)
		if one.Mode() != other.Mode() {
			t.Errorf("%s has the mode %v; want %v", pair[0], one.Mode(), other.Mode())
		}
	}

	f, err = createPart(folder, 4, 0)
	must(t, err)
	if err := closePart(f, broken); !errors.Is(err, broken) {
		t.Errorf("a part that was not written: %v", err)
	}
	if err := f.Close(); !errors.Is(err, os.ErrClosed) {
		t.Error("it is open")
	}
	if runtime.GOOS != "linux" {
		return
	}
	f, err = createPart(folder, 5, 0)
	must(t, err)
	must(t, os.RemoveAll(PartFolder(folder, 5)))
	if err := closePart(f, nil); err == nil {
		t.Error("the name of a part in a folder that has gone is durable")
	}
	r, w, err := os.Pipe()
	must(t, err)
	defer r.Close()
	if err := closePart(w, nil); err == nil {
		t.Error("a pipe is durable")
	}
	if err := syncFolder("/proc"); err == nil {
		t.Error("what the kernel shows is durable")
	}
}
