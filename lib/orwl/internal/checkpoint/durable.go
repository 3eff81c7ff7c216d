package checkpoint

import (
	"bufio"
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// temporary is in the names of files that are not complete yet.
const temporary = ".incomplete-"

// WriteDurably has a file stand under its name when it is complete and durable, or not at all.
func WriteDurably(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path+temporary+rand.Text(), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	w := bufio.NewWriterSize(f, 1<<16)
	err = errors.Join(write(w), w.Flush())
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncFolder(filepath.Dir(path))
}

// syncFolder makes the names in a folder durable.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" { // which does so by itself, and opens no folder for it
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
