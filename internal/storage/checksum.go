package storage

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"hash/crc64"
	"io"
	"os"
	"strings"
	"sync"

	"hash/adler32"
)

// Checksum is what a server tells of the contents of a file. The zero value is
// none.
type Checksum struct {
	Kind  string // adler32, crc32, crc32c, crc64nvme, md5, sha-1 or sha-256
	Value string // hexadecimal
}

// ChecksumError says that contents are not those that the other end has. They may
// be right another time.
type ChecksumError struct {
	PFN       string
	Kind      string
	Has, Told string // empty where they are not known
}

func (e *ChecksumError) Error() string {
	if e.Has == "" {
		return fmt.Sprintf("%s: what was transferred has another %s than the server tells", e.PFN, e.Kind)
	}
	return fmt.Sprintf("%s: what was transferred has the %s %s, and the server tells %s", e.PFN, e.Kind, e.Has, e.Told)
}

// Temporary makes Retry try once more.
func (e *ChecksumError) Temporary() bool { return true }

var nvme = sync.OnceValue(func() *crc64.Table { return crc64.MakeTable(0x9a6c9329ac4bc9b5) })

// Hash is what computes such a checksum; nil for none, and for kinds that are not
// known.
func (c Checksum) Hash() hash.Hash {
	switch c.Kind {
	case "adler32":
		return adler32.New()
	case "crc32c":
		return crc32.New(crc32.MakeTable(crc32.Castagnoli))
	case "crc32":
		return crc32.NewIEEE()
	case "crc64nvme":
		return crc64.New(nvme())
	case "md5":
		return md5.New()
	case "sha-1":
		return sha1.New()
	case "sha-256":
		return sha256.New()
	}
	return nil
}

// Check compares what h has computed with the checksum.
func (c Checksum) Check(h hash.Hash, pfn string) error {
	if h == nil {
		return nil
	}
	has := hex.EncodeToString(h.Sum(nil))
	if told := strings.ToLower(c.Value); strings.TrimLeft(has, "0") != strings.TrimLeft(told, "0") {
		return &ChecksumError{Shown(pfn), c.Kind, has, told}
	}
	return nil
}

// Checked is a body of which the last read fails with a ChecksumError if the contents are
// not those of the checksum. The end must be read to know.
func Checked(body io.ReadCloser, sum Checksum, pfn string) io.ReadCloser {
	if h := sum.Hash(); h != nil {
		return &checked{body, sum, h, pfn}
	}
	return body
}

type checked struct {
	io.ReadCloser
	sum  Checksum
	hash hash.Hash
	pfn  string
}

func (c *checked) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	_, _ = c.hash.Write(p[:n])
	if errors.Is(err, io.EOF) {
		if wrong := c.sum.Check(c.hash, c.pfn); wrong != nil {
			err = wrong
		}
	}
	return n, err
}

// CheckFile compares the contents of an open file, from its beginning, with the
// checksum.
func (c Checksum) CheckFile(file *os.File, pfn string) error {
	h := c.Hash()
	if h == nil {
		return nil
	}
	if _, err := io.Copy(h, io.NewSectionReader(file, 0, 1<<62)); err != nil {
		return err
	}
	return c.Check(h, pfn)
}
