package cache

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
)

// linkOrCopy makes the contents of a local regular file appear at target, where a
// copy is read-only.
func linkOrCopy(ctx context.Context, path, target string) (int64, error) {
	in, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, fmt.Errorf("%s is not a regular file", path)
	}
	if disk.Link(in, target) == nil {
		return info.Size(), nil
	}
	out, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_RDWR, info.Mode().Perm()&^0o222|0o400)
	if err != nil {
		return 0, err
	}
	return info.Size(), errors.Join(disk.Copy(ctx, out, in), out.Close())
}
