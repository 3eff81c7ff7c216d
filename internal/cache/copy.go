package cache

import (
	"errors"
	"io"
	"os"
)

// linkOrCopy makes the contents of a local file appear at target, where a copy
// is read-only.
func linkOrCopy(path, target string) (int64, error) {
	in, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	if os.Link(path, target) == nil {
		return info.Size(), nil
	}
	out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, info.Mode().Perm()&^0o222|0o400)
	if err != nil {
		return 0, err
	}
	size, err := io.Copy(out, in)
	return size, errors.Join(err, out.Close())
}
