package served

import (
	"bufio"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"fairway/internal/logical"
)

// Whatever comes, a request is refused, or within its bounds.
func FuzzRequest(f *testing.F) {
	f.Add("GET /fairway/storage/read?pfn=state:a HTTP/1.1\r\nHost: h\r\nRange: bytes=7-\r\nFairway-Ticket: AAAA\r\n\r\n")
	f.Add("HEAD /fairway/storage/read?pfn=https%3A%2F%2Fh%2Fx HTTP/1.1\r\nHost: h\r\n\r\n")
	f.Add("PUT /fairway/storage/write?pfn=state:p/a.v1.a2&pattern=state:p/*.v1.a2 HTTP/1.1\r\nHost: " +
		"h\r\nContent-Length: 3\r\nContent-Range: bytes 2-4/5\r\nFairway-Size: 5\r\nFairway-Mode: 755\r\nFairway-Adler32: " +
		"00000001\r\nFairway-Blake3: " + strings.Repeat("0a", 32) + "\r\n\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
		if err != nil {
			return
		}
		q, err := readRequest(r)
		if err != nil {
			return
		}
		switch {
		case q.right != Read && q.right != Write, q.from < 0, q.file.size < 0, q.pfn == "", len(q.pfn) > MaxName,
			len(q.pattern) > 2*MaxName:
			t.Fatalf("%+v", q)
		case !logical.Matches(q.pattern, q.pfn):
			t.Fatalf("%q is none of %q", q.pfn, q.pattern)
		case r.Method == http.MethodPut && q.from+r.ContentLength != q.file.size:
			t.Fatalf("%d bytes from %d on of %d", r.ContentLength, q.from, q.file.size)
		case q.file.mode&^0o777 != 0:
			t.Fatal(q.file.mode)
		}
		if q.right == Write {
			h := http.Header{}
			writeFile(h, q.file)
			if again, err := readFile(h); err != nil || again != q.file {
				t.Fatalf("%+v became %+v, %v", q.file, again, err)
			}
		}
	})
}

// What a server tells of a file, and what a pilot makes of it.
func FuzzInfo(f *testing.F) {
	f.Add("5", "1600000000123456789", "77", "644")
	f.Add("", "", "", "755")
	f.Fuzz(func(t *testing.T, size, modified, inode, mode string) {
		h := http.Header{sizeHeader: {size}, modifiedHeader: {modified}, inodeHeader: {inode}, modeHeader: {mode}}
		info, m, err := readInfo(h)
		if err != nil {
			return
		}
		again := http.Header{}
		writeInfo(again, info, m)
		second, n, err := readInfo(again)
		if err != nil || second != info && !info.ModTime.Equal(time.Time{}) || n != m || info.Size < -1 {
			t.Fatalf("%+v %v became %+v %v, %v", info, m, second, n, err)
		}
	})
}

// No name that a pilot sends is anything else at the server.
func FuzzNames(f *testing.F) {
	f.Add("state:a b/c%2F..?#&=+;\xff")
	f.Fuzz(func(t *testing.T, pfn string) {
		r, err := http.NewRequest(http.MethodGet, "https://server"+readPath, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.URL.RawQuery = url.Values{pfnKey: {pfn}}.Encode()
		if q, err := readRequest(r); err == nil && q.pfn != pfn {
			t.Fatalf("%q became %q", pfn, q.pfn)
		}
	})
}
