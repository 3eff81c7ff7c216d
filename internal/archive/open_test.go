package archive

import (
	"os"
	"path/filepath"
	"testing"
)

// Open files make the archive of a folder that has them, whatever has become of their names.
func TestOpenFilesArePacked(t *testing.T) {
	in := t.TempDir()
	var files []OpenFile
	for _, name := range []string{"b/c/d", "a", "b/x"} {
		must(t, os.MkdirAll(filepath.Join(in, filepath.Dir(name)), 0o755))
		write(t, filepath.Join(in, name), name, 0o644)
	}
	want, err := packed(t, in)
	must(t, err)
	for _, name := range []string{"b/x", "b/c/d", "a"} {
		f, err := os.Open(filepath.Join(in, name))
		must(t, err)
		defer f.Close()
		files = append(files, OpenFile{name, f})
	}
	must(t, os.RemoveAll(filepath.Join(in, "b")))
	out, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	must(t, err)
	defer out.Close()
	must(t, PackOpen(t.Context(), out, files))
	if string(bytesOf(t, out)) != string(bytesOf(t, want)) {
		t.Error("it is another archive")
	}
	folder, err := os.Open(in)
	must(t, err)
	defer folder.Close()
	if PackOpen(t.Context(), out, []OpenFile{{"f", folder}}) == nil {
		t.Error("a folder is packed as a file")
	}
}
