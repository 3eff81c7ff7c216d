package web

import (
	"net/http"
	"net/url"
	"path"
	"strings"
	"testing"

	"fairway/internal/storage"
)

// Whatever a server lists, each entry is a name in the folder that was asked for.
func FuzzListing(f *testing.F) {
	f.Add(`<D:multistatus xmlns:D="DAV:"><D:response><D:href>/a/</D:href></D:response><D:response><D:href>/a/x%20y</D:href>`+
		`<D:propstat><D:prop><D:resourcetype><D:collection/></D:resourcetype></D:prop></D:propstat></D:response></D:multistatus>`, "/a/")
	f.Add(`<multistatus xmlns="DAV:"><response><href>http://h/a/..</href></response><response><href>/a/b%2Fc</href></response></multistatus>`, "/a")
	f.Fuzz(func(t *testing.T, text, folder string) {
		found, err := readListing(strings.NewReader(text), folder, 100, 1<<20)
		if err != nil {
			return
		}
		for _, e := range found {
			name, err := url.PathUnescape(e.Name)
			if err != nil || name == "" || name == "." || name == ".." || strings.Contains(name, "/") ||
				path.Join("/a", name) != "/a/"+name {
				t.Fatalf("%q is listed in %q, %v", e.Name, folder, err)
			}
		}
	})
}

// Whatever a server tells as checksums, it is none, or one that can be compared.
func FuzzDigest(f *testing.F) {
	f.Add("adler32=0a1b2c3d", "")
	f.Add("md5=AAAAAAAAAAAAAAAAAAAAAA==, adler32=00000001", "AAAAAAAAAAAAAAAAAAAAAA==")
	f.Add("SHA-256=47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "")
	f.Fuzz(func(t *testing.T, told, md5 string) {
		sum := checksumOf(http.Header{"Digest": {told}, "Content-Md5": {md5}})
		h := sum.Hash()
		if h == nil {
			if sum != (storage.Checksum{}) {
				t.Fatalf("%+v", sum)
			}
			return
		}
		if len(sum.Value) != 2*h.Size() {
			t.Fatalf("%+v", sum)
		}
		_ = sum.Check(h, "https://h/x")
	})
}
