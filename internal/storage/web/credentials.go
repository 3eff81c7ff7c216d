package web

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"fairway/internal/storage"
)

// Credentials are where tokens and certificates are found. They are looked up
// when they are needed, so that a renewed one counts.
type Credentials struct {
	token       func() (string, error) // nil: there is none
	certificate string                 // path of certificate and key; empty: none
	authorities string                 // folder of certificates of authorities; empty: those of the system only
}

// CredentialsOfUser are those that the environment names, as grid tools read it:
// BEARER_TOKEN, BEARER_TOKEN_FILE, bt_uUID in XDG_RUNTIME_DIR or /tmp;
// X509_USER_PROXY or /tmp/x509up_uUID; X509_CERT_DIR.
func CredentialsOfUser() Credentials {
	c := Credentials{authorities: os.Getenv("X509_CERT_DIR")}
	c.certificate = firstFile(os.Getenv("X509_USER_PROXY"), fmt.Sprintf("/tmp/x509up_u%d", os.Getuid()))
	name := fmt.Sprintf("bt_u%d", os.Getuid())
	var inRuntime string
	if folder := os.Getenv("XDG_RUNTIME_DIR"); folder != "" {
		inRuntime = filepath.Join(folder, name)
	}
	if token := strings.TrimSpace(os.Getenv("BEARER_TOKEN")); token != "" {
		c.token = func() (string, error) { return token, nil }
	} else if file := firstFile(os.Getenv("BEARER_TOKEN_FILE"), inRuntime, "/tmp/"+name); file != "" {
		c.token = func() (string, error) { return readToken(file) }
	}
	return c
}

// firstFile is the first path if it is given, and else the first of the others
// that is a file of this user.
func firstFile(given string, others ...string) string {
	if given != "" {
		return given
	}
	for _, path := range others {
		if info, err := os.Lstat(path); err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 == 0 {
			return path
		}
	}
	return ""
}

func readToken(path string) (string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("bearer token: %w", err)
	}
	token := strings.TrimSpace(string(text))
	if token == "" || strings.ContainsAny(token, "\r\n \t") {
		return "", fmt.Errorf("bearer token: %s does not hold one token and nothing else", path)
	}
	return token, nil
}

// describe says what a server was given, without telling it.
func (c Credentials) describe(u *url.URL) string {
	var given []string
	switch {
	case c.token != nil && u.Scheme != "https" && !storage.OnThisMachine(u.Hostname()):
		given = append(given, "the bearer token is not sent without encryption: use https")
	case c.token != nil:
		given = append(given, "with the bearer token of BEARER_TOKEN or BEARER_TOKEN_FILE, which may have expired")
	}
	if c.certificate != "" {
		given = append(given, "with the certificate of "+c.certificate)
	}
	if given == nil {
		return "no credentials: set BEARER_TOKEN, BEARER_TOKEN_FILE or X509_USER_PROXY"
	}
	return strings.Join(given, "; ")
}

// tls is how encrypted servers are met. A certificate is given to those that ask
// for one.
func (c Credentials) tls() *tls.Config {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.authorities != "" {
		config.RootCAs = withAuthorities(c.authorities)
	}
	if c.certificate != "" {
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(c.certificate, c.certificate)
			if err != nil {
				return nil, fmt.Errorf("X509_USER_PROXY: %s: %w", c.certificate, err)
			}
			return &pair, nil
		}
	}
	return config
}

func withAuthorities(folder string) *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	for _, pattern := range []string{"*.pem", "*.[0-9]"} {
		files, _ := filepath.Glob(filepath.Join(folder, pattern))
		for _, file := range files {
			if text, err := os.ReadFile(file); err == nil {
				pool.AppendCertsFromPEM(text)
			}
		}
	}
	return pool
}
