package memory

import (
	"encoding/binary"
	"os"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

// mmapPrivate maps the memory so that what is written stays with this process.
func (f *File) mmapPrivate(size int) ([]byte, error) {
	return f.mapping(size, true, unix.MAP_PRIVATE|unix.MAP_NORESERVE)
}

// dropPrivate forgets what was written to a private mapping.
func dropPrivate(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	return unix.Madvise(b, unix.MADV_DONTNEED)
}

// pagemapFile tells which pages of this process's memory are its own. It stays open once it
// could be opened.
var pagemapFile struct {
	sync.Mutex
	*os.File
}

func pagemap() (*os.File, error) {
	pagemapFile.Lock()
	defer pagemapFile.Unlock()
	if pagemapFile.File == nil {
		f, err := os.Open("/proc/self/pagemap")
		if err != nil {
			return nil, err
		}
		pagemapFile.File = f
	}
	return pagemapFile.File, nil
}

// pageScanner finds the pages of a private mapping that have been written.
type pageScanner struct {
	arg     pageScan
	regions [256]pageRegion
	entries [32 << 10]byte
	pieces  []Extent
}

// pageScan and pageRegion are struct pm_scan_arg and page_region of linux/fs.h.
type pageScan struct {
	size, flags, start, end, walkEnd uint64
	vec, vecLen, maxPages            uint64
	inverted, all, anyOf, returned   uint64
}

type pageRegion struct{ start, end, _ uint64 }

const (
	pagemapScan = 0xc0606610 // PAGEMAP_SCAN, since Linux 6.7

	pageIsFile    = 1 << 2
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
)

// copied returns the pieces of b that may have been written, valid until the next call. Where the
// system does not tell, that is all of it.
func (s *pageScanner) copied(b []byte) []Extent {
	f, err := pagemap()
	if err != nil {
		return []Extent{{0, len(b)}}
	}
	s.pieces = s.pieces[:0]
	if s.scan(f, b) == nil || s.read(f, b) == nil {
		return s.pieces
	}
	return []Extent{{0, len(b)}}
}

// scan asks for the pages that are not those of the file.
func (s *pageScanner) scan(f *os.File, b []byte) error {
	first := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	s.arg = pageScan{
		size: uint64(unsafe.Sizeof(s.arg)), start: first, end: first + uint64(roundUp(len(b), os.Getpagesize())),
		vec: uint64(uintptr(unsafe.Pointer(&s.regions))), vecLen: uint64(len(s.regions)),
		inverted: pageIsFile, all: pageIsFile, anyOf: pageIsPresent | pageIsSwapped, returned: pageIsPresent,
	}
	for s.arg.start < s.arg.end {
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), pagemapScan, uintptr(unsafe.Pointer(&s.arg)))
		if errno != 0 {
			s.pieces = s.pieces[:0]
			return errno
		}
		for _, r := range s.regions[:n] {
			s.add(int(r.start-first), int(r.end-first), len(b))
		}
		s.arg.start = s.arg.walkEnd
	}
	return nil
}

// read does what scan does on systems before Linux 6.7, at 8 bytes for each page.
func (s *pageScanner) read(f *os.File, b []byte) error {
	const fileBit, swapBit, presentBit = 1 << 61, 1 << 62, 1 << 63
	page := os.Getpagesize()
	first, pages := int64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))/int64(page), roundUp(len(b), page)/page
	for i := 0; i < pages; {
		part := s.entries[:min(len(s.entries), 8*(pages-i))]
		if _, err := f.ReadAt(part, 8*(first+int64(i))); err != nil {
			return err
		}
		for ; len(part) > 0; part, i = part[8:], i+1 {
			if e := binary.NativeEndian.Uint64(part); e&(swapBit|presentBit) != 0 && e&fileBit == 0 {
				s.add(i*page, (i+1)*page, len(b))
			}
		}
	}
	return nil
}

func (s *pageScanner) add(start, end, size int) {
	s.pieces = appendPiece(s.pieces, start, min(end, size)-start)
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
