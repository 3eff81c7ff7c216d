package web

import (
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/storage/storagetest"
)

// A server is believed if an authority of the system or of X509_CERT_DIR has signed
// it, and gets the certificate of X509_USER_PROXY if it asks for one.
func TestCertificates(t *testing.T) {
	authority, stranger := storagetest.Certify(t, "authority", nil), storagetest.Certify(t, "stranger", nil)
	host, user, other := storagetest.Certify(t, "host", authority), storagetest.Certify(t, "user", authority),
		storagetest.Certify(t, "other", stranger)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.TLS.PeerCertificates[0].Subject.CommonName))
	}))
	server.TLS = host.Serves(authority)
	server.StartTLS()
	t.Cleanup(server.Close)
	url := strings.Replace(server.URL, "127.0.0.1", "localhost", 1) + "/x"

	folder := t.TempDir()
	trusted, distrusted := filepath.Join(folder, "trusted"), filepath.Join(folder, "distrusted")
	for _, path := range []string{trusted, distrusted} {
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	authority.Write(t, trusted+"/0123abcd.0", false)
	stranger.Write(t, distrusted+"/stranger.pem", false)
	proxy, strange, bad := folder+"/proxy", folder+"/strange", folder+"/bad"
	user.Write(t, proxy, true)
	other.Write(t, strange, true)
	if err := os.WriteFile(bad, []byte(secret), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, one := range map[string]struct{ authorities, proxy, want, says string }{
		"good":                              {trusted, proxy, "user", ""},
		"a server that nobody vouches for":  {distrusted, proxy, "", "certificate signed by unknown authority"},
		"a user whom the server refuses":    {trusted, strange, "", "certificate"},
		"a file that holds no certificate":  {trusted, bad, "", "X509_USER_PROXY"},
		"a file that is not there any more": {trusted, folder + "/gone", "", "X509_USER_PROXY"},
	} {
		t.Setenv("X509_CERT_DIR", one.authorities)
		t.Setenv("X509_USER_PROXY", one.proxy)
		e := New(CredentialsOfUser())
		path := filepath.Join(t.TempDir(), "got")
		_, err := e.Get(t.Context(), url, path)
		got, missing := os.ReadFile(path)
		if string(got) != one.want || (one.says == "") != (err == nil) || one.says != "" &&
			!errors.Is(missing, fs.ErrNotExist) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		if err != nil && (!strings.Contains(err.Error(), one.says) || strings.Contains(err.Error(), secret)) {
			t.Errorf("%s: %v", name, err)
		}
		e.Close()
	}
}

// What others may read is nobody's proof: a token or certificate in /tmp or in the
// runtime folder counts only if it is for this user alone.
func TestForeignCredentialsAreNotTaken(t *testing.T) {
	folder := t.TempDir()
	open, closed, link := folder+"/open", folder+"/closed", folder+"/link"
	for path, mode := range map[string]fs.FileMode{open: 0o644, closed: 0o600} {
		if err := errors.Join(os.WriteFile(path, []byte("x"), mode), os.Chmod(path, mode)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(closed, link); err != nil {
		t.Fatal(err)
	}
	if got := firstFile("", open, link, closed); got != closed {
		t.Error(got)
	}
	if got := firstFile("", open, link); got != "" {
		t.Error(got)
	}
	for _, text := range []string{"", "two tokens", "a\nb"} {
		if err := os.WriteFile(closed, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if token, err := readToken(closed); err == nil || text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %q, %v", text, token, err)
		}
	}
}
