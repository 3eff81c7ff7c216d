package bootstrap

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
)

// Folder is the name of the folder for copies of the program, in that for pilots.
const Folder = "bin"

// Program is what a pilot is started from.
type Program struct {
	Hash string // SHA-256, hexadecimal
	Size int64  // bytes
}

const copyPrefix = "fairway-"

// hashForm is that of Program.Hash.
var hashForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Path is where a folder has the copy of a program.
func Path(folder, hash string) string { return filepath.Join(folder, copyPrefix+hash) }

// Keep copies the program of this process into a folder. What stands there under its
// name and is not it, complete and for nobody else to change, is replaced.
func Keep(folder string) (Program, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return Program{}, err
	}
	defer self.Close()
	p, err := programIn(self)
	if err != nil {
		return p, err
	}
	if there, err := Find(folder, p.Hash); err == nil && there == p {
		return p, nil
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return p, err
	}
	if _, err := self.Seek(0, io.SeekStart); err != nil {
		return p, err
	}
	return p, copyTo(Path(folder, p.Hash), self)
}

func copyTo(path string, from io.Reader) error {
	fresh, err := os.CreateTemp(filepath.Dir(path), copyPrefix+"*"+unfinished)
	if err != nil {
		return err
	}
	_, err = io.Copy(fresh, from)
	err = errors.Join(err, fresh.Chmod(0o500), fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return disk.Sync(filepath.Dir(path))
}

const unfinished = ".new"

// Find looks at the copy of a program. One that is damaged, or that others could have
// changed, is an error.
func Find(folder, hash string) (Program, error) {
	file, err := openCopy(Path(folder, hash))
	if err != nil {
		return Program{}, err
	}
	defer file.Close()
	p, err := programIn(file)
	if err == nil && p.Hash != hash {
		err = fmt.Errorf("%s is damaged: its contents have the hash %s", file.Name(), p.Hash)
	}
	return p, err
}

// openCopy opens a regular file that nobody but this user may change.
func openCopy(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	err = unix.Fstat(int(file.Fd()), &st)
	switch user := os.Geteuid(); {
	case err != nil:
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		err = fmt.Errorf("%s is not a regular file", path)
	case int(st.Uid) != user:
		err = fmt.Errorf("%s belongs to another user", path)
	case st.Mode&0o022 != 0:
		err = fmt.Errorf("others may change %s", path)
	case st.Mode&0o100 == 0:
		err = fmt.Errorf("%s may not be executed", path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

func programIn(file *os.File) (Program, error) {
	sum := sha256.New()
	size, err := io.Copy(sum, file)
	return Program{Hash: hex.EncodeToString(sum.Sum(nil)), Size: size}, err
}

// Sweep removes the copies in a folder but those with some hashes, and what was left of
// copies that were never finished. The caller keeps others from copying there.
func Sweep(folder string, used ...string) error {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	left := 0
	for _, e := range entries {
		name, ours := strings.CutPrefix(e.Name(), copyPrefix)
		isCopy := hashForm.MatchString(name) || strings.HasSuffix(name, unfinished)
		if !ours || !isCopy || !e.Type().IsRegular() || slices.Contains(used, name) {
			left++
			continue
		}
		err = errors.Join(err, os.Remove(filepath.Join(folder, e.Name())))
	}
	if left == 0 && err == nil {
		_ = os.Remove(folder) // somebody may have put something there meanwhile
	}
	return err
}
