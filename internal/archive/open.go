package archive

import (
	"archive/zip"
	"cmp"
	"context"
	"os"
	"path"
	"slices"
)

// OpenFile is a regular file that is open, under the name that it has in an archive.
type OpenFile struct {
	Name string // relative, with slashes
	File *os.File
}

// PackOpen writes the archive of a folder that has these files, whatever has become of their names
// since they were opened. A file that changes meanwhile is an error.
func PackOpen(ctx context.Context, out *os.File, files []OpenFile) error {
	files = slices.SortedFunc(slices.Values(files), func(a, b OpenFile) int { return cmp.Compare(a.Name, b.Name) })
	holes := newHoles(out)
	z := zip.NewWriter(holes)
	err := z.SetComment(comment)
	folders := make(map[string]bool)
	for i := 0; err == nil && i < len(files); i++ {
		err = packFolders(z, path.Dir(files[i].Name), folders)
		if err == nil {
			err = files[i].pack(ctx, z)
		}
	}
	if err == nil {
		err = z.Close()
	}
	if err == nil {
		err = holes.end()
	}
	return err
}

func packFolders(z *zip.Writer, name string, written map[string]bool) error {
	if name == "." || written[name] {
		return nil
	}
	if err := packFolders(z, path.Dir(name), written); err != nil {
		return err
	}
	written[name] = true
	_, err := (&Entry{Name: name, Kind: Folder}).create(z)
	return err
}

func (f *OpenFile) pack(ctx context.Context, z *zip.Writer) error {
	info, err := f.File.Stat()
	if err != nil {
		return err
	}
	e, err := entryOf(f.Name, info, nil)
	if err != nil {
		return err
	}
	if e.Kind != File {
		return &ContentError{f.Name, "is no file"}
	}
	to, err := e.create(z)
	if err != nil {
		return err
	}
	return copyUnchanged(ctx, to, f.File, e, info)
}
