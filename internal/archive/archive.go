// Package archive keeps a folder as one file, and gives the folder back.
//
// An archive is a ZIP file without compression, whose directory is the manifest:
// names, kinds, sizes and CRC-32 checksums. Equal folders give equal bytes: the
// names are sorted, there are no times and no owners, and of the permissions only
// whether a file may be executed is kept.
//
// Guarantees:
//
//   - A folder holds regular files, folders and symbolic links that stay beneath
//     it, wherever the folder is moved. Anything else is an error, a
//     [ContentError].
//   - What [Open] accepts leads nowhere else when it is unpacked: no name leads
//     out of the folder or through a link, none comes twice, and all sizes
//     together are no larger than the archive.
//   - Pages of zeros become holes, in the archive and in what is unpacked.
//
// Calls end soon after their context.
package archive

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/beneath"
	"fairway/internal/disk"
)

const (
	// MaxEntries bounds what one folder may hold: files, folders and links.
	MaxEntries = 1 << 18
	// MaxName bounds the path of an entry within the folder, in bytes.
	MaxName = 3072
)

// comment marks the archives of this package, and their form.
const comment = "Fairway folder 1"

// Kind is what an entry of a folder is.
type Kind byte

// The kinds of entries.
const (
	File   Kind = 'f'
	Folder Kind = 'd'
	Link   Kind = 'l'
)

// Entry is something in a folder.
type Entry struct {
	Name       string // relative, with slashes; none at its end
	Kind       Kind
	Executable bool   // of a file
	Size       int64  // of a file, bytes
	Target     string // of a link
	Sum        uint32 // of a file in an archive: CRC-32
}

// ContentError says that a folder holds what an archive cannot.
type ContentError struct {
	Name string // in the folder
	Why  string // for a person: "is a named pipe"
}

func (e *ContentError) Error() string { return fmt.Sprintf("%s in it %s", e.Name, e.Why) }

// epoch is the time of all entries, the first that the format knows.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Pack writes the archive of a folder into an empty file. A file that changes
// meanwhile is an error.
func Pack(ctx context.Context, out *os.File, folder *beneath.Folder) error {
	holes := newHoles(out)
	z := zip.NewWriter(holes)
	if err := z.SetComment(comment); err != nil {
		return err
	}
	err := Walk(folder, func(in *beneath.Folder, element string, e Entry, info fs.FileInfo) error {
		return pack(ctx, z, in, element, e, info)
	})
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = holes.end()
	}
	return err
}

// PackListing writes the archive of a folder from outside, as it was listed. A file that
// has changed since then is an error.
func PackListing(ctx context.Context, out *os.File, folder string, listing Listing) error {
	holes := newHoles(out)
	z := zip.NewWriter(holes)
	err := z.SetComment(comment)
	for i := 0; err == nil && i < len(listing); i++ {
		err = listing[i].pack(ctx, z, folder)
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = holes.end()
	}
	return err
}

func (f *Found) pack(ctx context.Context, z *zip.Writer, folder string) error {
	to, err := f.create(z)
	if err != nil || f.Kind == Folder {
		return err
	}
	if f.Kind == Link {
		_, err = io.WriteString(to, f.Target)
		return err
	}
	from, err := os.OpenFile(filepath.Join(folder, f.Name), os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	return copyUnchanged(ctx, to, from, f.Entry, f.Info)
}

func (e *Entry) create(z *zip.Writer) (io.Writer, error) {
	header := &zip.FileHeader{Name: e.Name, Method: zip.Store, Modified: epoch}
	header.SetMode(e.mode())
	if e.Kind == Folder {
		header.Name += "/"
	}
	return z.CreateHeader(header)
}

func pack(ctx context.Context, z *zip.Writer, in *beneath.Folder, element string, e Entry, info fs.FileInfo) error {
	to, err := e.create(z)
	if err != nil {
		return err
	}
	switch e.Kind {
	case File:
		return packFile(ctx, to, in, element, e, info)
	case Link:
		_, err = io.WriteString(to, e.Target)
	}
	return err
}

func packFile(
	ctx context.Context, to io.Writer, in *beneath.Folder, element string, e Entry, before fs.FileInfo,
) error {
	from, err := in.Open(element)
	if err != nil {
		return refused(e.Name, err)
	}
	defer from.Close()
	return copyUnchanged(ctx, to, from, e, before)
}

func copyUnchanged(ctx context.Context, to io.Writer, from *os.File, e Entry, before fs.FileInfo) error {
	size, err := io.Copy(to, disk.Within(ctx, from))
	if err != nil {
		return fmt.Errorf("%s in it: %w", e.Name, err)
	}
	now, err := from.Stat()
	if err == nil && (size != e.Size || !os.SameFile(now, before) || now.Size() != size ||
		!now.ModTime().Equal(before.ModTime())) {
		err = fmt.Errorf("somebody wrote to %s in it while it was stored", e.Name)
	}
	return err
}

// mode are the permissions that an entry is unpacked with, less the umask.
func (e *Entry) mode() fs.FileMode {
	switch {
	case e.Kind == Folder:
		return fs.ModeDir | 0o755
	case e.Kind == Link:
		return fs.ModeSymlink | 0o777
	case e.Executable:
		return 0o555
	}
	return 0o444
}

// refused turns the error of opening what a folder holds into one that says what
// it is.
func refused(name string, err error) error {
	var kind *beneath.KindError
	switch {
	case errors.As(err, &kind):
		return &ContentError{name, "is " + kind.Kind}
	case errors.Is(err, fs.ErrPermission):
		return &ContentError{name, "cannot be read"}
	}
	return err
}
