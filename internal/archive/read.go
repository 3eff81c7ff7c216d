package archive

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"fairway/internal/beneath"
	"fairway/internal/disk"
)

// ErrForm says that a file is no archive of this package.
var ErrForm = errors.New("it is no folder that Fairway has stored")

// Archive is an open archive. Its file must stay open and as it is.
type Archive struct {
	entries []Entry
	files   []*zip.File // of the entries
}

// Open reads the manifest of an archive and checks it. The error wraps [ErrForm]
// if the file is none.
func Open(file io.ReaderAt, size int64) (*Archive, error) {
	z, err := zip.NewReader(file, size)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrForm, err)
	}
	if z.Comment != comment {
		return nil, fmt.Errorf("%w: it has another form", ErrForm)
	}
	a := &Archive{files: z.File}
	kinds := map[string]Kind{".": Folder}
	left := size
	for _, f := range z.File {
		e, err := a.entry(f)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrForm, err)
		}
		left -= int64(f.UncompressedSize64)
		switch _, again := kinds[e.Name]; {
		case again:
			err = &ContentError{e.Name, "comes twice"}
		case kinds[path.Dir(e.Name)] != Folder:
			err = &ContentError{e.Name, "is in no folder"}
		case left < 0 || f.UncompressedSize64 > uint64(size):
			err = &ContentError{e.Name, "is larger than the archive"}
		case len(a.entries) == MaxEntries:
			err = &ContentError{e.Name, "is one too many"}
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrForm, err)
		}
		kinds[e.Name] = e.Kind
		a.entries = append(a.entries, e)
	}
	return a, nil
}

func (a *Archive) entry(f *zip.File) (Entry, error) {
	e := Entry{Name: strings.TrimSuffix(f.Name, "/"), Size: int64(f.UncompressedSize64), Sum: f.CRC32}
	if !fs.ValidPath(strings.ToValidUTF8(e.Name, "?")) || e.Name == "." || strings.Contains(e.Name, "\x00") ||
		len(e.Name) > MaxName {
		return e, fmt.Errorf("it has the name %.64q", f.Name)
	}
	if f.Method != zip.Store || f.CompressedSize64 != f.UncompressedSize64 || f.Flags&1 != 0 {
		return e, &ContentError{e.Name, "is compressed"}
	}
	switch mode := f.Mode(); {
	case mode.Type() == fs.ModeDir && strings.HasSuffix(f.Name, "/") && e.Size == 0:
		e.Kind = Folder
		return e, nil
	case strings.HasSuffix(f.Name, "/"):
	case mode.Type() == 0:
		e.Kind, e.Executable = File, mode.Perm()&0o111 != 0
		return e, nil
	case mode.Type() == fs.ModeSymlink && e.Size <= MaxName:
		e.Kind = Link
		target, err := readAll(f)
		e.Target, e.Size, e.Sum = target, 0, 0
		if err == nil {
			err = e.checkTarget()
		}
		return e, err
	}
	return e, &ContentError{e.Name, "is of no known kind"}
}

func readAll(f *zip.File) (string, error) {
	r, err := f.Open()
	if err != nil {
		return "", err
	}
	defer r.Close()
	b, err := io.ReadAll(r)
	return string(b), err
}

// Entries is the manifest, in the order of [Walk]. It must not be changed.
func (a *Archive) Entries() []Entry { return a.entries }

// Unpack fills an empty folder. Files are read-only, and have that time of
// modification. What was unpacked before an error stays.
func (a *Archive) Unpack(ctx context.Context, into *beneath.Folder, modified time.Time) error {
	u := &unpacking{
		ctx: ctx, into: into, name: ".", in: into, out: newHoles(nil), buffer: make([]byte, 64<<10), modified: modified,
	}
	defer u.leave()
	for i, e := range a.entries {
		err := ctx.Err()
		if err == nil {
			err = u.entry(e, a.files[i])
		}
		if err != nil {
			return fmt.Errorf("unpack %s: %w", e.Name, err)
		}
	}
	return nil
}

// unpacking is one call of Unpack. It keeps the folder open that the last entry is
// in: most entries are where the one before is.
type unpacking struct {
	ctx      context.Context
	into     *beneath.Folder
	name     string          // of the folder that is open
	in       *beneath.Folder // that folder
	out      *holes
	buffer   []byte
	modified time.Time
}

func (u *unpacking) leave() {
	if u.in != u.into {
		_ = u.in.Close()
	}
}

func (u *unpacking) entry(e Entry, f *zip.File) error {
	if folder := path.Dir(e.Name); folder != u.name {
		in, err := u.into.Sub(folder)
		if err != nil {
			return err
		}
		u.leave()
		u.name, u.in = folder, in
	}
	switch element := path.Base(e.Name); e.Kind {
	case Folder:
		return u.in.Mkdir(element, e.mode())
	case Link:
		return u.in.Symlink(e.Target, element)
	default:
		return u.file(element, e, f)
	}
}

func (u *unpacking) file(element string, e Entry, f *zip.File) error {
	from, err := f.Open()
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := u.in.Create(element, e.mode())
	if err != nil {
		return err
	}
	u.out.reset(to)
	_, err = io.CopyBuffer(u.out, disk.Within(u.ctx, from), u.buffer)
	if err == nil {
		err = u.out.end()
	}
	return errors.Join(err, touch(to, u.modified), to.Close())
}

func touch(f *os.File, modified time.Time) error {
	return os.Chtimes(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), time.Time{}, modified)
}

// Same reports whether a folder holds what the archive does.
func (a *Archive) Same(ctx context.Context, folder *beneath.Folder) (bool, error) {
	at := 0
	err := Walk(folder, func(in *beneath.Folder, element string, e Entry, _ fs.FileInfo) error {
		if at == len(a.entries) {
			return errOther
		}
		want := a.entries[at]
		at++
		if e.Kind == File && e.Name == want.Name && e.Size == want.Size {
			var err error
			if e.Sum, err = sumOf(ctx, in, element); err != nil {
				return err
			}
		}
		if e != want {
			return errOther
		}
		return nil
	})
	var content *ContentError
	if errors.Is(err, errOther) || errors.As(err, &content) {
		return false, nil
	}
	return err == nil && at == len(a.entries), err
}

var errOther = errors.New("the folder holds something else")

func sumOf(ctx context.Context, in *beneath.Folder, element string) (uint32, error) {
	f, err := in.Open(element)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	sum := crc32.NewIEEE()
	_, err = io.Copy(sum, disk.Within(ctx, f))
	return sum.Sum32(), err
}
