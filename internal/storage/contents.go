package storage

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"

	"fairway/internal/logical"
)

// SmallFile is the largest file, in bytes, whose contents are known by their SHA-256. Those of larger
// ones are known by BLAKE3.
const SmallFile = 4 << 20

// ContentsOf is a text that says what a local file holds, of which size tells the size. The file is read.
// Errors are those of reading, and of ctx.
func ContentsOf(ctx context.Context, path string, size int64) (string, error) {
	if size <= SmallFile {
		return sha256Of(path)
	}
	return blake3Of(ctx, path)
}

// StateText is a text that stands for the contents of a file that nobody has read: it changes whenever the
// file is written to or replaced, as far as that can be told. Where there are no inodes, the URL stands
// for them.
func StateText(url string, info Info) string {
	if info.Inode == 0 {
		return fmt.Sprintf("%s-%d-%d", url, info.Size, info.ModTime.UnixNano())
	}
	return fmt.Sprintf("%d-%d-%d", info.Size, info.ModTime.UnixNano(), info.Inode)
}

// blake3Of reads a large file. BLAKE3 is as fast as disks are.
func blake3Of(ctx context.Context, path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := blake3.New()
	for piece := make([]byte, 1<<20); ; {
		n, err := file.Read(piece)
		_, _ = sum.Write(piece[:n])
		if errors.Is(err, io.EOF) {
			break
		}
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return "", fmt.Errorf("reading %s: %w", path, err)
		}
	}
	return logical.BLAKE3Of + hex.EncodeToString(sum.Sum(nil)), nil
}

// sumPieces has what sha256Of reads into. A run looks at all inputs that its jobs have links to,
// since each link changes the stamp.
var sumPieces = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// sha256Of does without os.File, which costs as much as to read a small file.
func sha256Of(path string) (string, error) {
	fd, err := retried(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0) })
	if err != nil {
		return "", &os.PathError{Op: "open", Path: path, Err: err}
	}
	defer func() { _ = unix.Close(fd) }()
	piece := sumPieces.Get().(*[64 << 10]byte)
	defer sumPieces.Put(piece)
	sum := sha256.New()
	for left := SmallFile + 1; left > 0; {
		n, err := retried(func() (int, error) { return unix.Read(fd, piece[:min(left, len(piece))]) })
		if err != nil {
			return "", &os.PathError{Op: "read", Path: path, Err: err}
		}
		if n == 0 {
			break
		}
		_, _ = sum.Write(piece[:n])
		left -= n
	}
	return logical.SHA256Of + hex.EncodeToString(sum.Sum(nil)), nil
}

func retried(call func() (int, error)) (n int, err error) {
	for {
		if n, err = call(); !errors.Is(err, unix.EINTR) {
			return n, err
		}
	}
}
