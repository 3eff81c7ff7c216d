package gpu

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// Whoever has a whole device holds its file locked for itself (flock). Whoever has a share holds it
// locked together with others, and as many of its first bytes as the share has thousandths, each
// byte for itself (open file description locks, which are of a file that is open as those of flock
// are). So the kernel keeps shares below a whole, and a share from being beside one.
const parts = 1000

func openLock(folder string, d Device) (*os.File, error) {
	return os.OpenFile(filepath.Join(folder, filepath.Base(d.UUID)), os.O_CREATE|os.O_RDWR, 0o600)
}

func isHeld(err error) bool {
	return errors.Is(err, unix.EWOULDBLOCK) || errors.Is(err, unix.EACCES) || errors.Is(err, errLittle)
}

// errLittle says that less is left of a device than a share needs.
var errLittle = errors.New("too little is left of the GPU")

func lockShare(file *os.File, share int64) error {
	if err := unix.Flock(int(file.Fd()), unix.LOCK_SH|unix.LOCK_NB); err != nil {
		return err
	}
	for at := int64(0); share > 0; {
		start, end, err := freeFrom(file, at)
		if err != nil {
			return err
		}
		if start == end {
			return errLittle
		}
		n := min(share, end-start)
		err = unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, bytesOf(start, start+n))
		switch {
		case err == nil:
			share, at = share-n, start+n
		case !isHeld(err): // else somebody was faster
			return err
		}
	}
	return nil
}

// freeFrom finds the next parts that nobody has, at or after one: none if both are the same. The
// kernel tells of any lock in a range, not of the first one.
func freeFrom(file *os.File, at int64) (start, end int64, err error) {
	end = parts
	for at < end {
		held := bytesOf(at, end)
		if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, held); err != nil {
			return 0, 0, err
		}
		switch {
		case held.Type == unix.F_UNLCK:
			return at, end, nil
		case held.Start > at:
			end = held.Start
		case held.Len <= 0: // to the end of the file
			return parts, parts, nil
		default:
			at, end = held.Start+held.Len, parts
		}
	}
	return parts, parts, nil
}

func bytesOf(start, end int64) *unix.Flock_t {
	return &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: start, Len: end - start}
}

// fullestFirst are the devices that have enough for a share, those first that have the least.
func fullestFirst(devices []Device, share int64, folder string) (enough []Device, err error) {
	left := map[string]int64{}
	for _, d := range devices {
		if left[d.UUID], err = partsLeft(folder, d); err != nil {
			return nil, fmt.Errorf("looking at the shares of a GPU: %w", err)
		}
		if left[d.UUID] >= share {
			enough = append(enough, d)
		}
	}
	slices.SortStableFunc(enough, func(a, b Device) int { return cmp.Compare(left[a.UUID], left[b.UUID]) })
	return enough, nil
}

// partsLeft is what nobody has a share of. One that somebody has as a whole seems to be free.
func partsLeft(folder string, d Device) (left int64, err error) {
	file, err := openLock(folder, d)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	for at := int64(0); at < parts; {
		start, end, err := freeFrom(file, at)
		if err != nil {
			return 0, err
		}
		left, at = left+end-start, max(end, at+1)
	}
	return left, nil
}
