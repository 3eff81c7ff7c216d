package archive

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/beneath"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t testing.TB, path, text string, mode fs.FileMode) {
	t.Helper()
	must(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600),
		os.Chmod(path, mode)))
}

func open(t testing.TB, path string) *beneath.Folder {
	t.Helper()
	f, err := beneath.Open(path)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// packed is the archive of a folder, as a file.
func packed(t testing.TB, folder string) (*os.File, error) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	return f, Pack(t.Context(), f, open(t, folder))
}

func bytesOf(t testing.TB, f *os.File) []byte {
	t.Helper()
	b, err := os.ReadFile(f.Name())
	must(t, err)
	return b
}

// described lists what is in a folder, with all that an archive keeps.
func described(t testing.TB, folder string) string {
	t.Helper()
	var s strings.Builder
	must(t, Walk(open(t, folder), func(_ *beneath.Folder, _ string, e Entry, _ fs.FileInfo) error {
		text := ""
		if e.Kind == File {
			b, err := os.ReadFile(filepath.Join(folder, e.Name))
			must(t, err)
			text = fmt.Sprintf("%d %x", len(b), sha256.Sum256(b))
		}
		fmt.Fprintf(&s, "%c %t %q %q %q\n", e.Kind, e.Executable, e.Name, e.Target, text)
		return nil
	}))
	return s.String()
}

// scene is a folder with everything that an archive keeps.
func scene(t testing.TB, folder string) {
	t.Helper()
	write(t, folder+"/b.txt", "b", 0o600)
	write(t, folder+"/run", "#!/bin/sh\n", 0o710)
	write(t, folder+"/.hidden", "", 0o644)
	write(t, folder+"/sub/sub/a b\n\\é", "deep", 0o444)
	write(t, folder+"/sub/caf\xe9.csv", "latin", 0o644)
	write(t, folder+"/"+strings.Repeat("long/", 200)+strings.Repeat("n", 255), "long", 0o644)
	must(t, os.Mkdir(folder+"/empty", 0o755))
	for link, to := range map[string]string{
		"link":        "sub/sub",
		"sub/up":      "../b.txt",
		"sub/sub/top": "../..",
		"nowhere":     "sub/none",
		"self":        "self",
	} {
		must(t, os.Symlink(to, filepath.Join(folder, link)))
	}
}

func TestFolderComesBackAsItWas(t *testing.T) {
	folder, again := t.TempDir(), t.TempDir()
	scene(t, folder)
	f, err := packed(t, folder)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	a, err := Open(f, info.Size())
	must(t, err)
	then := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	must(t, a.Unpack(t.Context(), open(t, again), then))
	if got, want := described(t, again), described(t, folder); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for name, mode := range map[string]fs.FileMode{"b.txt": 0o444, "run": 0o555} {
		info, err := os.Stat(filepath.Join(again, name))
		if err != nil || info.Mode() != mode || !info.ModTime().Equal(then) {
			t.Errorf("%s: %v, %v, %v", name, info.Mode(), info.ModTime(), err)
		}
	}
	if same, err := a.Same(t.Context(), open(t, again)); !same || err != nil {
		t.Errorf("the same folder: %t, %v", same, err)
	}
	second, err := packed(t, again)
	must(t, err)
	if !bytes.Equal(bytesOf(t, f), bytesOf(t, second)) {
		t.Error("the archive of a copy holds other bytes")
	}
	for name, change := range map[string]func() error{
		"other bytes": func() error {
			return errors.Join(os.Remove(again+"/b.txt"), os.WriteFile(again+"/b.txt", []byte("c"), 0o444))
		},
		"one more":     func() error { return os.WriteFile(again+"/zz", nil, 0o444) },
		"one less":     func() error { return os.Remove(again + "/sub/caf\xe9.csv") },
		"a named pipe": func() error { return unix.Mkfifo(again+"/pipe", 0o644) },
		"another link": func() error { return errors.Join(os.Remove(again+"/link"), os.Symlink("sub", again+"/link")) },
		"executable":   func() error { return os.Chmod(again+"/b.txt", 0o755) },
	} {
		must(t, os.RemoveAll(again))
		must(t, os.Mkdir(again, 0o755))
		must(t, a.Unpack(t.Context(), open(t, again), then))
		must(t, change())
		if same, err := a.Same(t.Context(), open(t, again)); same || err != nil {
			t.Errorf("%s: %t, %v", name, same, err)
		}
	}
}

func TestEmptyFolderIsAFolder(t *testing.T) {
	f, err := packed(t, t.TempDir())
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	a, err := Open(f, info.Size())
	if err != nil || len(a.Entries()) != 0 {
		t.Errorf("%v, %v", a, err)
	}
}

func TestHolesStayHoles(t *testing.T) {
	folder, again := t.TempDir(), t.TempDir()
	write(t, folder+"/a", "a", 0o644)
	write(t, folder+"/sparse", "begin", 0o644)
	must(t, os.Truncate(folder+"/sparse", 64<<20))
	write(t, folder+"/z", "z", 0o644)
	f, err := packed(t, folder)
	must(t, err)
	info, err := f.Stat()
	must(t, err)
	a, err := Open(f, info.Size())
	must(t, err)
	must(t, a.Unpack(t.Context(), open(t, again), time.Now()))
	unpacked, err := os.Stat(again + "/sparse")
	must(t, err)
	for name, info := range map[string]fs.FileInfo{"archive": info, "unpacked": unpacked} {
		if blocks := info.Sys().(*syscall.Stat_t).Blocks * 512; info.Size() < 64<<20 || blocks > 1<<20 {
			t.Errorf("%s: %d bytes take %d of disk", name, info.Size(), blocks)
		}
	}
	if described(t, folder) != described(t, again) {
		t.Error("other contents")
	}
}

// What an archive cannot keep is named, with what to do.
func TestWhatAFolderMustNotHold(t *testing.T) {
	for name, c := range map[string]struct {
		make func(folder string) error
		want string
	}{
		"named pipe":       {func(f string) error { return unix.Mkfifo(f+"/d/x", 0o644) }, "d/x in it is a named pipe"},
		"socket":           {func(f string) error { return unix.Mknod(f+"/d/x", unix.S_IFSOCK|0o644, 0) }, "d/x in it is a socket"},
		"absolute link":    {func(f string) error { return os.Symlink(f+"/file", f+"/d/x") }, "no relative path"},
		"link out":         {func(f string) error { return os.Symlink("../../x", f+"/d/x") }, "may lead out"},
		"link to above":    {func(f string) error { return os.Symlink("..", f+"/x") }, "may lead out"},
		"up behind a name": {func(f string) error { return os.Symlink("d/../../x", f+"/d/x") }, "may lead out"},
		"up behind a link": {func(f string) error {
			return errors.Join(os.Symlink(".", f+"/d/dot"), os.Symlink("dot/../..", f+"/d/x"))
		}, "may lead out"},
		"too long":          {func(f string) error { return long(f, MaxName+10) }, "the limit is"},
		"link to long name": {func(f string) error { return os.Symlink(strings.Repeat("x/", MaxName/2)+"yy", f+"/d/x") }, "no path"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, folder+"/file", "", 0o644)
			must(t, os.Mkdir(folder+"/d", 0o755))
			must(t, c.make(folder))
			_, err := packed(t, folder)
			if content := (*ContentError)(nil); !errors.As(err, &content) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v; want %q", err, c.want)
			}
		})
	}
}

// long makes folders within folders, whose path is so long.
func long(folder string, size int) error {
	name := strings.Repeat("n", 250)
	for range size/len(name) + 1 {
		if err := os.Mkdir(filepath.Join(folder, name), 0o755); err != nil {
			return err
		}
		folder = filepath.Join(folder, name)
	}
	return nil
}

// What a person's folder holds has one archive, however it was listed.
func TestAListingIsPackedAsItsFolder(t *testing.T) {
	folder := t.TempDir()
	scene(t, folder)
	walked, err := packed(t, folder)
	must(t, err)
	listing, err := List(folder)
	must(t, err)
	pack := func() (*os.File, error) {
		out, err := os.Create(filepath.Join(t.TempDir(), "archive"))
		must(t, err)
		t.Cleanup(func() { out.Close() })
		return out, PackListing(t.Context(), out, folder, listing)
	}
	listed, err := pack()
	must(t, err)
	if !bytes.Equal(bytesOf(t, walked), bytesOf(t, listed)) {
		t.Error("the archives differ")
	}
	for _, found := range listing {
		if found.Kind == File && found.Size > 0 {
			must(t, os.Chtimes(filepath.Join(folder, found.Name), time.Time{}, time.Unix(1, 0)))
			break
		}
	}
	if _, err := pack(); err == nil || !strings.Contains(err.Error(), "somebody wrote to") {
		t.Error("a file that has changed since:", err)
	}
}

// A folder of a person may hold links to files anywhere.
func TestListingOfAPersonsFolder(t *testing.T) {
	folder, other := t.TempDir(), t.TempDir()
	write(t, folder+"/a", "a", 0o644)
	write(t, other+"/big", "outside", 0o755)
	must(t, os.Symlink(other+"/big", folder+"/big"))
	must(t, os.Symlink("a", folder+"/within"))
	l, err := List(folder)
	must(t, err)
	if len(l) != 3 || l[0].Kind != File || l[1].Kind != File || !l[1].Executable || l[1].Size != 7 || l[2].Kind != Link ||
		l.Size() != 8 {
		t.Errorf("%+v", l)
	}
	before := l.State()
	must(t, os.Chtimes(other+"/big", time.Time{}, time.Unix(7, 0)))
	if l, err = List(folder); err != nil || l.State() == before {
		t.Errorf("a file that was written to: %v", err)
	}
	for target, want := range map[string]string{
		other:           "a folder outside",
		other + "/none": "not there",
		"/dev/null":     "a device",
	} {
		must(t, os.Symlink(target, folder+"/x"))
		if _, err := List(folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a link to %s: %v", target, err)
		}
		must(t, os.Remove(folder+"/x"))
	}
}

func TestPackingEndsWithItsContext(t *testing.T) {
	folder := t.TempDir()
	write(t, folder+"/a", "a", 0o644)
	f, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	must(t, err)
	defer f.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Pack(ctx, f, open(t, folder)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// forged is an archive with entries that Pack does not make.
func forged(t testing.TB, headers ...*zip.FileHeader) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	must(t, z.SetComment(comment))
	for _, h := range headers {
		w, err := z.CreateHeader(h)
		must(t, err)
		if !strings.HasSuffix(h.Name, "/") {
			_, err = w.Write([]byte(h.Comment))
			must(t, err)
		}
	}
	must(t, z.Close())
	return b.Bytes()
}

// header is an entry; its comment is what it holds.
func header(name string, mode fs.FileMode, text string) *zip.FileHeader {
	h := &zip.FileHeader{Name: name, Comment: text}
	h.SetMode(mode)
	return h
}

func TestForgedArchivesAreRefused(t *testing.T) {
	deflated := header("a", 0o644, strings.Repeat("x", 1000))
	deflated.Method = zip.Deflate
	for name, headers := range map[string][]*zip.FileHeader{
		"upwards":           {header("../x", 0o644, "")},
		"upwards within":    {header("a/", fs.ModeDir|0o755, ""), header("a/../../x", 0o644, "")},
		"absolute":          {header("/etc/x", 0o644, "")},
		"no name":           {header(".", 0o644, "")},
		"zero byte":         {header("a\x00b", 0o644, "")},
		"twice":             {header("a", 0o644, ""), header("a", 0o644, "")},
		"file and folder":   {header("a", 0o644, ""), header("a/", fs.ModeDir|0o755, "")},
		"in no folder":      {header("a/b", 0o644, "")},
		"in a file":         {header("a", 0o644, ""), header("a/b", 0o644, "")},
		"through a link":    {header("a", fs.ModeSymlink|0o777, "."), header("a/b", 0o644, "")},
		"link out":          {header("a", fs.ModeSymlink|0o777, "../x")},
		"absolute link":     {header("a", fs.ModeSymlink|0o777, "/etc/passwd")},
		"empty link":        {header("a", fs.ModeSymlink|0o777, "")},
		"device":            {header("a", fs.ModeDevice|0o644, "")},
		"named pipe":        {header("a", fs.ModeNamedPipe|0o644, "")},
		"file as a folder":  {header("a", fs.ModeDir|0o755, "")},
		"compressed":        {deflated},
		"name far too long": {header(strings.Repeat("n", MaxName+1), 0o644, "")},
	} {
		b := forged(t, headers...)
		if _, err := Open(bytes.NewReader(b), int64(len(b))); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
	var plain bytes.Buffer
	must(t, zip.NewWriter(&plain).Close())
	for name, b := range map[string][]byte{"nothing": nil, "some text": []byte("hello"), "another's ZIP": plain.Bytes()} {
		if _, err := Open(bytes.NewReader(b), int64(len(b))); !errors.Is(err, ErrForm) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever an archive says, nothing outside of its folder is touched, and it takes
// no more room than it has itself.
func FuzzUnpack(f *testing.F) {
	folder := f.TempDir()
	scene(f, folder)
	whole, err := packed(f, folder)
	must(f, err)
	f.Add(bytesOf(f, whole))
	f.Add(forged(f, header("a/", fs.ModeDir|0o755, ""), header("a/l", fs.ModeSymlink|0o777, "../b"),
		header("b", 0o755, "text")))
	f.Add(forged(f, header("l", fs.ModeSymlink|0o777, "../x"), header("l/y", 0o644, "text")))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := Open(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		above := t.TempDir()
		into := above + "/into"
		must(t, os.Mkdir(into, 0o755))
		if err := a.Unpack(t.Context(), open(t, into), time.Unix(0, 0)); err != nil && !errors.Is(err, fs.ErrExist) {
			// Contents that do not fit their checksum, names that the file system refuses.
			t.Log(err)
		}
		if names, err := os.ReadDir(above); err != nil || len(names) != 1 {
			t.Fatalf("beside the folder: %v, %v", names, err)
		}
		size := int64(0)
		must(t, filepath.WalkDir(into, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if d.Type() == 0 {
				size += info.Size()
			}
			if d.Type() == fs.ModeSymlink {
				if to, err := filepath.EvalSymlinks(path); err == nil && to != into && !strings.HasPrefix(to, into+"/") {
					t.Errorf("%s leads to %s", path, to)
				}
			}
			if d.Type()&^(fs.ModeDir|fs.ModeSymlink) != 0 || info.Mode()&(fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) != 0 {
				t.Errorf("%s is %v", path, info.Mode())
			}
			return err
		}))
		if size > int64(len(b)) {
			t.Errorf("%d bytes hold %d", len(b), size)
		}
	})
}
