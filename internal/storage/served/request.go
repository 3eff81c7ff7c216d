package served

import (
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"fairway/internal/logical"
	"fairway/internal/storage"
)

// Prefix is how the paths of this protocol begin.
const Prefix = "/fairway/storage/"

const (
	readPath  = Prefix + "read"
	writePath = Prefix + "write"
)

// What stands in the query of a request.
const (
	pfnKey     = "pfn"
	patternKey = "pattern" // where the ticket is for a pattern
)

// Headers and trailers. Sums are hexadecimal, numbers decimal, permissions octal.
const (
	ticketHeader   = "Fairway-Ticket"   // base 64
	sizeHeader     = "Fairway-Size"     // bytes of the whole file
	modifiedHeader = "Fairway-Modified" // nanoseconds since 1970
	inodeHeader    = "Fairway-Inode"
	modeHeader     = "Fairway-Mode"
	heldHeader     = "Fairway-Held" // bytes that the server has of an upload
	adler32Header  = "Fairway-Adler32"
	blake3Header   = "Fairway-Blake3"
	errorTrailer   = "Fairway-Error"
)

// Packed is the name of an archive of a folder from outside (package archive), which a
// server makes when it is read.
func Packed(pfn string) string { return pfn + "/" }

// Unpacked is the folder of which a name is the archive; false for other names.
func Unpacked(pfn string) (folder string, ok bool) { return strings.CutSuffix(pfn, "/") }

// MaxName bounds a PFN and a pattern, in bytes.
const MaxName = 8 << 10

type request struct {
	right   Right
	pfn     string
	pattern string // what the ticket is for
	ticket  []byte
	from    int64 // the first byte that is wanted or sent
	file    file  // what is written
}

type file struct {
	size int64
	mode fs.FileMode // permissions
	sums sums
}

// readRequest decodes a request. It reads nothing of the body.
func readRequest(r *http.Request) (*request, error) {
	q := new(request)
	switch {
	case r.URL.Path == readPath && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		q.right = Read
	case r.URL.Path == writePath && (r.Method == http.MethodPut || r.Method == http.MethodHead):
		q.right = Write
	default:
		return nil, fmt.Errorf("%s %s is no request of this protocol; pilot and server may be of different versions",
			r.Method, strconv.Quote(r.URL.Path))
	}
	if len(r.URL.RawQuery) > 8*MaxName {
		return nil, fmt.Errorf("a query of %d bytes is too long", len(r.URL.RawQuery))
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	q.pfn, q.pattern = query.Get(pfnKey), query.Get(patternKey)
	if q.pattern == "" {
		q.pattern = logical.Escape(q.pfn)
	}
	switch {
	case q.pfn == "" || len(q.pfn) > MaxName || len(query.Get(patternKey)) > MaxName || strings.Contains(q.pfn, "\x00"):
		return nil, fmt.Errorf("a PFN of 1 to %d bytes without NUL is wanted", MaxName)
	case !logical.Matches(q.pattern, q.pfn):
		return nil, fmt.Errorf("%s does not match %s", strconv.Quote(q.pfn), strconv.Quote(q.pattern))
	}
	if q.ticket, err = base64.StdEncoding.DecodeString(r.Header.Get(ticketHeader)); err != nil {
		return nil, fmt.Errorf("%s: %w", ticketHeader, err)
	}
	if q.right == Read {
		q.from, err = readRange(r.Header.Get("Range"))
		return q, err
	}
	if q.file, err = readFile(r.Header); err != nil {
		return nil, err
	}
	if r.Method == http.MethodPut {
		q.from, err = readContentRange(r.Header.Get("Content-Range"), q.file.size)
		if err == nil && r.ContentLength != q.file.size-q.from {
			err = fmt.Errorf("%d bytes follow, and %d are announced", r.ContentLength, q.file.size-q.from)
		}
	}
	return q, err
}

func readFile(h http.Header) (f file, err error) {
	if f.size, err = readNumber(h, sizeHeader); err != nil {
		return f, err
	}
	if f.mode, err = readMode(h); err != nil {
		return f, err
	}
	f.sums, err = readSums(h)
	return f, err
}

func writeFile(h http.Header, f file) {
	h.Set(sizeHeader, strconv.FormatInt(f.size, 10))
	h.Set(modeHeader, strconv.FormatUint(uint64(f.mode.Perm()), 8))
	writeSums(h, f.sums)
}

func readNumber(h http.Header, name string) (int64, error) {
	n, err := strconv.ParseUint(h.Get(name), 10, 63)
	if err != nil {
		return 0, fmt.Errorf("%s: a whole number from 0 is wanted, not %s", name, strconv.Quote(h.Get(name)))
	}
	return int64(n), nil
}

func readMode(h http.Header) (fs.FileMode, error) {
	n, err := strconv.ParseUint(h.Get(modeHeader), 8, 9)
	if err != nil {
		return 0, fmt.Errorf("%s: permissions such as 755 are wanted, not %s", modeHeader, strconv.Quote(h.Get(modeHeader)))
	}
	return fs.FileMode(n), nil
}

func readSums(h http.Header) (s sums, err error) {
	for name, into := range map[string][]byte{adler32Header: s.adler32[:], blake3Header: s.blake3[:]} {
		text := h.Get(name)
		if len(text) != hex.EncodedLen(len(into)) {
			return s, fmt.Errorf("%s: %d hexadecimal digits are wanted, not %s", name, hex.EncodedLen(len(into)),
				strconv.Quote(text))
		}
		if _, err := hex.Decode(into, []byte(text)); err != nil {
			return s, fmt.Errorf("%s: %w", name, err)
		}
	}
	return s, nil
}

func writeSums(h http.Header, s sums) {
	h.Set(adler32Header, hex.EncodeToString(s.adler32[:]))
	h.Set(blake3Header, hex.EncodeToString(s.blake3[:]))
}

// readRange decodes "bytes=N-". Other ranges are none.
func readRange(text string) (from int64, err error) {
	if text == "" {
		return 0, nil
	}
	number, ok := strings.CutPrefix(text, "bytes=")
	number, open := strings.CutSuffix(number, "-")
	n, err := strconv.ParseUint(number, 10, 63)
	if !ok || !open || err != nil {
		return 0, fmt.Errorf("header Range: bytes=N- is wanted, not %s", strconv.Quote(text))
	}
	return int64(n), nil
}

func readContentRange(text string, size int64) (from int64, err error) {
	if text == "" {
		return 0, nil
	}
	number, _, _ := strings.Cut(strings.TrimPrefix(text, "bytes "), "-")
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || int64(n) >= size || text != contentRange(int64(n), size) {
		return 0, fmt.Errorf("header Content-Range: the rest of %d bytes is wanted, not %s", size, strconv.Quote(text))
	}
	return int64(n), nil
}

// contentRange is the rest of a file from a byte on; "bytes */SIZE" where that is
// nothing.
func contentRange(from, size int64) string {
	if from >= size {
		return fmt.Sprintf("bytes */%d", size)
	}
	return fmt.Sprintf("bytes %d-%d/%d", from, size-1, size)
}

func writeInfo(h http.Header, i storage.Info, mode fs.FileMode) {
	if i.Size >= 0 {
		h.Set(sizeHeader, strconv.FormatInt(i.Size, 10))
	}
	if !i.ModTime.IsZero() {
		h.Set(modifiedHeader, strconv.FormatInt(i.ModTime.UnixNano(), 10))
	}
	if i.Inode != 0 {
		h.Set(inodeHeader, strconv.FormatUint(i.Inode, 10))
	}
	h.Set(modeHeader, strconv.FormatUint(uint64(mode.Perm()), 8))
}

func readInfo(h http.Header) (i storage.Info, mode fs.FileMode, err error) {
	i.Size = -1
	if h.Get(sizeHeader) != "" {
		if i.Size, err = readNumber(h, sizeHeader); err != nil {
			return i, 0, err
		}
	}
	if text := h.Get(modifiedHeader); text != "" {
		n, bad := strconv.ParseInt(text, 10, 64)
		i.ModTime, err = time.Unix(0, n), errors.Join(err, bad)
	}
	if text := h.Get(inodeHeader); text != "" {
		n, bad := strconv.ParseUint(text, 10, 64)
		i.Inode, err = n, errors.Join(err, bad)
	}
	mode, bad := readMode(h)
	return i, mode, errors.Join(err, bad)
}
