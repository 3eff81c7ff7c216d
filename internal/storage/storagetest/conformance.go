// Package storagetest has what every storage element must pass, real servers to
// pass it on, and a proxy that makes them fail.
package storagetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"fairway/internal/storage"
)

// Folder is a folder of a storage element that is empty and may be written to.
type Folder struct {
	Element storage.Element
	PFN     string // of the folder, without a slash at its end
	// Replaces says that the server's rename replaces what came since it was looked
	// for, so that of several Put of other contents at one time more than one may
	// succeed. What is there is still one of them, whole.
	Replaces bool
	NoTimes  bool // the server tells no time of modification
	Escaped  bool // PFNs have names as URLs have them
	// Server lists and removes files where Element does not.
	Server storage.Element
}

func (p Folder) server() storage.Element {
	if p.Server != nil {
		return p.Server
	}
	return p.Element
}

func (p Folder) file(name string) string {
	if p.Escaped {
		name = (&url.URL{Path: name}).EscapedPath()
	}
	return p.PFN + "/" + name
}

// Run checks the guarantees of [storage.Element] on places that open makes, one
// for each test.
func Run(t *testing.T, open func(t *testing.T) Folder) {
	for name, test := range map[string]func(*testing.T, Folder){
		"what is put comes back":                 comesBack,
		"nothing is overwritten":                 notOverwritten,
		"put again succeeds":                     putAgain,
		"what is missing is said to be":          missing,
		"folders are listed":                     listed,
		"of many that put one file one wins":     oneWins,
		"nothing unfinished is left":             nothingLeft,
		"a file to be got must not be there":     gotOnce,
		"odd names are names":                    oddNames,
		"a name is refused or means itself":      oddOrRefused,
		"long names are refused or names":        longNames,
		"nobody sees a part of a file":           neverAPart,
		"a transfer that is cancelled leaves it": cancelled,
	} {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// Local writes a local file.
func Local(t *testing.T, contents string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "local")
	if err := os.WriteFile(path, []byte(contents), 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}

// Contents are bytes that no compression shortens and no repetition hides.
func Contents(size int) string {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{1, byte(size), byte(size >> 8), byte(size >> 16)}).Read(b) // it cannot fail
	return string(b)
}

func put(t *testing.T, p Folder, name, contents string) {
	t.Helper()
	if err := p.Element.Put(t.Context(), Local(t, contents), p.file(name)); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, p Folder, name, contents string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "got")
	size, err := p.Element.Get(t.Context(), p.file(name), path)
	got, _ := os.ReadFile(path)
	if err != nil || size != int64(len(contents)) || string(got) != contents {
		t.Fatalf("got %d bytes of %d, the right ones: %v, error %v", size, len(contents), string(got) == contents, err)
	}
}

func names(t *testing.T, p Folder, folder string) []string {
	t.Helper()
	entries, err := p.server().List(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Folder {
			e.Name += "/"
		}
		names = append(names, e.Name)
	}
	slices.Sort(names)
	return names
}

func comesBack(t *testing.T, p Folder) {
	for name, size := range map[string]int{"empty": 0, "small": 3, "deep/er/large": 20 << 20} {
		contents := Contents(size)
		put(t, p, name, contents)
		check(t, p, name, contents)
		if info, err := p.Element.Stat(t.Context(), p.file(name)); err != nil || info.Size != int64(size) ||
			info.ModTime.IsZero() != p.NoTimes {
			t.Errorf("%s: %+v, %v", name, info, err)
		}
		body, err := p.Element.Open(t.Context(), p.file(name))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(body); err != nil || string(got) != contents {
			t.Errorf("%s: %d bytes were read, %v", name, len(got), err)
		}
		if err := body.Close(); err != nil {
			t.Error(err)
		}
	}
}

func notOverwritten(t *testing.T, p Folder) {
	put(t, p, "x", "same")
	for _, other := range []string{"also", "longer", ""} {
		if err := p.Element.Put(t.Context(), Local(t, other), p.file("x")); !errors.Is(err, fs.ErrExist) {
			t.Error(err)
		}
	}
	check(t, p, "x", "same")
}

func putAgain(t *testing.T, p Folder) {
	for range 2 {
		put(t, p, "x", "same")
	}
	check(t, p, "x", "same")
}

func missing(t *testing.T, p Folder) {
	put(t, p, "there", "x")
	for _, name := range []string{"gone", "no/such/folder/gone"} {
		_, stat := p.Element.Stat(t.Context(), p.file(name))
		_, get := p.Element.Get(t.Context(), p.file(name), filepath.Join(t.TempDir(), "x"))
		_, open := p.Element.Open(t.Context(), p.file(name))
		for _, err := range []error{stat, get, open} {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := p.server().Remove(t.Context(), p.file(name)); err != nil {
			t.Errorf("%s: removed: %v", name, err)
		}
	}
	for range 2 {
		if err := p.server().Remove(t.Context(), p.file("there")); err != nil {
			t.Error(err)
		}
	}
	if _, err := p.Element.Stat(t.Context(), p.file("there")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("it was removed:", err)
	}
}

func listed(t *testing.T, p Folder) {
	for _, name := range []string{"a.fq", "b.fq", "run1/a.fq", "run2/deep/a.fq"} {
		put(t, p, name, name)
	}
	for folder, want := range map[string]string{"": "a.fq b.fq run1/ run2/", "/run1": "a.fq", "/run2": "deep/"} {
		if got := strings.Join(names(t, p, p.PFN+folder), " "); got != want {
			t.Errorf("%q holds %q, want %q", folder, got, want)
		}
	}
}

func oneWins(t *testing.T, p Folder) {
	contents := []string{Contents(1 << 20), Contents(1<<20 + 1), Contents(1<<20 + 2), Contents(1<<20 + 3)}
	errs := make([]error, len(contents))
	var group sync.WaitGroup
	for i, text := range contents {
		path := Local(t, text)
		group.Go(func() { errs[i] = p.Element.Put(t.Context(), path, p.file("x")) })
	}
	group.Wait()
	won := slices.Index(errs, nil)
	if won < 0 {
		t.Fatal("none won:", errs)
	}
	for i, err := range errs {
		if i != won && !errors.Is(err, fs.ErrExist) && !(p.Replaces && err == nil) {
			t.Errorf("%d won, and %d got %v", won, i, err)
		}
	}
	body, err := p.Element.Open(t.Context(), p.file("x"))
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got, err := io.ReadAll(body)
	if at := slices.Index(contents, string(got)); err != nil || at < 0 || errs[at] != nil {
		t.Errorf("what is there is that of %d of those that succeeded, %v; %v", at, errs, err)
	}
}

func nothingLeft(t *testing.T, p Folder) {
	put(t, p, "x", "same")
	_ = p.Element.Put(t.Context(), Local(t, "other"), p.file("x"))
	if got := names(t, p, p.PFN); !slices.Equal(got, []string{"x"}) {
		t.Error("left behind:", got)
	}
}

func gotOnce(t *testing.T, p Folder) {
	put(t, p, "x", "contents")
	path := Local(t, "mine")
	if _, err := p.Element.Get(t.Context(), p.file("x"), path); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if got, _ := os.ReadFile(path); string(got) != "mine" {
		t.Errorf("it was overwritten with %q", got)
	}
}

// neverAPart looks for a file all the time while it is put.
func neverAPart(t *testing.T, p Folder) {
	contents := Contents(24 << 20)
	path, ended := Local(t, contents), make(chan error, 1)
	go func() { ended <- p.Element.Put(t.Context(), path, p.file("deep/x")) }()
	for looking := true; looking; {
		select {
		case err := <-ended:
			if err != nil {
				t.Fatal(err)
			}
			looking = false
		default:
		}
		info, err := p.Element.Stat(t.Context(), p.file("deep/x"))
		if err == nil && info.Size != int64(len(contents)) || err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("there is a file of %d bytes, %v", info.Size, err)
		}
	}
	check(t, p, "deep/x", contents)
}

func oddOrRefused(t *testing.T, p Folder) {
	for i, name := range []string{
		"a b", "100%", "%41", "ü-é", "a#b", "it's", `"q"`, "[x]", "{y}", "*", "a?b=c", `back\slash`, "--help", " ", "a:b",
		"$(id)", "new\nline",
	} {
		folder := fmt.Sprintf("%d/", i)
		if err := p.Element.Put(t.Context(), Local(t, name), p.file(folder+name)); err != nil {
			if storage.Temporary(err) {
				t.Errorf("%q is refused for a while only: %v", name, err)
			}
			if entries, err := p.server().List(t.Context(), p.file(folder)); err == nil && len(entries) > 0 {
				t.Errorf("%q was refused, and there is %v", name, entries)
			}
			continue
		}
		check(t, p, folder+name, name)
		got := names(t, p, strings.TrimSuffix(p.file(folder), "/"))
		if p.Escaped && len(got) == 1 {
			got[0], _ = url.PathUnescape(got[0])
		}
		if !slices.Equal(got, []string{name}) {
			t.Errorf("%q is listed as %q", name, got)
		}
	}
}

func longNames(t *testing.T, p Folder) {
	for what, name := range map[string]string{
		"one element":   strings.Repeat("x", 4000),
		"many elements": strings.Repeat(strings.Repeat("y", 199)+"/", 20) + "z",
		"nearly long":   strings.Repeat(strings.Repeat("v", 99)+"/", 7) + "w",
	} {
		err := p.Element.Put(t.Context(), Local(t, what), p.file(name))
		if err == nil {
			check(t, p, name, what)
			continue
		}
		if what == "nearly long" {
			t.Errorf("a name of %d bytes is refused: %v", len(name), err)
		}
		if _, stat := p.Element.Stat(t.Context(), p.file(name)); stat == nil {
			t.Errorf("%s: it was refused, and is there: %v", what, err)
		}
	}
	put(t, p, "after", "x")
	check(t, p, "after", "x")
}

// A blank stands for what must be escaped in some place. URLs say it as %20.
func oddNames(t *testing.T, p Folder) {
	for _, name := range []string{"a,b;c=d", "-x", "a&b'c", "+~!@$"} {
		put(t, p, name, name)
		check(t, p, name, name)
	}
	if got := names(t, p, p.PFN); len(got) != 4 {
		t.Error(got)
	}
}

func cancelled(t *testing.T, p Folder) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	put(t, p, "there", Contents(1<<20))
	if err := p.Element.Put(ctx, Local(t, Contents(20<<20)), p.file("x")); err == nil && !local(p) {
		t.Error("it was put all the same")
	}
	path := filepath.Join(t.TempDir(), "got")
	if _, err := p.Element.Get(ctx, p.file("there"), path); err == nil && !local(p) {
		t.Error("it was got all the same")
	} else if _, stat := os.Lstat(path); err != nil && stat == nil {
		t.Error("a part of it is there")
	}
	check(t, p, "there", Contents(1<<20))
}

// local reports whether files are linked, which takes no time that could be
// cancelled.
func local(p Folder) bool { return p.Server == nil && storage.IsLocal(p.PFN) }
