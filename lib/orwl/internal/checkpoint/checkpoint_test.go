package checkpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A part that was sent is closed when it counts.
func TestPartsAreClosed(t *testing.T) {
	v := &Vault{folder: t.TempDir(), tasks: 2, open: make(map[int]map[int]Sum)}
	var part Incoming
	must(t, v.take(1, &part, Message{Iteration: 2, Data: []byte("x")}))
	file, q := part.file, Message{Iteration: 2}
	q.SetPart(part.sum)
	must(t, v.complete(1, &part, q))
	if _, err := file.Write([]byte("y")); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
}

func TestManifestsAreChecked(t *testing.T) {
	for text, want := range map[string]string{
		`{"tasks": 2, "iteration": 3, "parts": [{"size": 1}, {"size": 2}]}`: "",
		`{"tasks": 2, "iteration": 1, "parts": [{"size": 1}, {"size": 2}]}`: "",
		`{"tasks": 2, "iteration": 0, "parts": [{"size": 1}, {"size": 2}]}`: "iteration 0 with 2 parts of 2",
		`{"tasks": 2, "iteration": 3, "parts": [{"size": 1}]}`:              "iteration 3 with 1 parts of 2",
		`{"tasks": 2, "iteration": 3, "parts": [{"size": 1}, {"size": 0}]}`: "a part has 0 bytes",
		`{"tasks": 3}`: "the last checkpoint is of 3 tasks, and these are 2",
		`{`:            ErrDamaged.Error(),
	} {
		var w Manifest
		if err := parseManifest([]byte(text), 2, &w); want == "" {
			must(t, err)
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestVaultIsTidied(t *testing.T) {
	v := &Vault{folder: t.TempDir(), tasks: 1, whole: Manifest{Iteration: 7}}
	for _, name := range []string{"3/0", "7/0", "9/0", "notes/a"} {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(v.folder, name)), 0o700))
		must(t, os.WriteFile(filepath.Join(v.folder, name), nil, 0o600))
	}
	for _, name := range []string{ManifestName, ManifestName + temporary + "x", "5"} {
		must(t, os.WriteFile(filepath.Join(v.folder, name), nil, 0o600))
	}
	must(t, v.tidy(7))
	left, err := filepath.Glob(v.folder + "/*")
	must(t, err)
	for i, path := range left {
		left[i] = filepath.Base(path)
	}
	if got := strings.Join(left, " "); got != "5 7 "+ManifestName+" notes" && got != "5 7 notes "+ManifestName {
		t.Errorf("left is %s", got)
	}
	for iteration, ok := range map[uint64]bool{
		6: false, 7: false, 8: true, 1 << 62: true, 1<<62 + 1: false, 1 << 63: false,
	} {
		if n, err := v.checkIteration(Message{Iteration: iteration}); (err == nil) != ok || ok && n != int(iteration) {
			t.Errorf("%d: %d, %v", iteration, n, err)
		}
	}
	if _, err := createPart(filepath.Join(v.folder, "5"), 8, 0); err == nil {
		t.Error("a part stands in a file")
	}
}

// saved is a location in memory.
type saved struct {
	name string
	data []byte
}

func (s *saved) LocationName() string { return s.name }
func (s *saved) Copied() []byte       { return s.data }

func (s *saved) Restore(size int, read func([]byte)) error {
	s.data = make([]byte, size)
	read(s.data)
	return nil
}

// A part says when it is not what was written.
func TestDamagedPart(t *testing.T) {
	from := []*saved{{"a", []byte("12345678")}, {name: "b"}}
	var b bytes.Buffer
	sum, err := WritePart(t.Context(), &b, from)
	must(t, err)
	must(t, ReadPart(t.Context(), bytes.NewReader(b.Bytes()), sum, from))
	if string(from[0].data) != "12345678" || len(from[1].data) != 0 {
		t.Errorf("read %q and %q", from[0].data, from[1].data)
	}
	for i := range b.Len() {
		broken := bytes.Clone(b.Bytes())
		broken[i] ^= 1
		if ReadPart(t.Context(), bytes.NewReader(broken), sum, from) == nil {
			t.Errorf("byte %d may be another", i)
		}
	}
	if ReadPart(t.Context(), bytes.NewReader(b.Bytes()[:b.Len()-1]), sum, from) == nil {
		t.Error("a byte may lack")
	}
}

func FuzzPart(f *testing.F) {
	f.Add([]byte("{\"locations\":[{\"name\":\"a\",\"size\":3}]}\nabc"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var sum Sum
		sum.Add(data)
		all := []*saved{{name: "a"}}
		if ReadPart(t.Context(), bytes.NewReader(data), sum, all) == nil && len(all[0].data) > len(data) {
			t.Error("more was read than there is")
		}
	})
}

func FuzzManifest(f *testing.F) {
	text, _ := json.Marshal(Manifest{Tasks: 1, Iteration: 3, Parts: []Sum{{10, 5}}})
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		var w Manifest
		if parseManifest(text, 1, &w) == nil && (len(w.Parts) != 1 || w.Iteration <= 0) {
			t.Errorf("%+v", w)
		}
	})
}

func FuzzMessage(f *testing.F) {
	f.Add(make([]byte, messageHead+3))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := ParseMessage(b); err == nil && len(m.Data) > PieceSize {
			t.Error(len(m.Data))
		}
	})
}
