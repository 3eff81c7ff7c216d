package access

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
)

// ServerName is the name in the certificate of every server. A pilot knows a
// server by its pin, and not by where it is.
const ServerName = "fairway"

// StandbyName is the name in the certificate of a server that stands by. Who looks for the active one
// passes on to the next address, and has said nothing yet.
const StandbyName = "fairway-standby"

// Authority is what the server of a state proves itself with. It is the same
// for all servers of the state, and for no other state.
type Authority struct {
	key         ed25519.PrivateKey
	certificate *x509.Certificate
	tickets     [sha256.Size]byte // key of the tickets of attempts
	shares      [sha256.Size]byte // key from which those of [ShareKey] are derived
}

const (
	keyBlock         = "PRIVATE KEY"
	certificateBlock = "CERTIFICATE"
	stateHeader      = "State"
)

// OpenAuthority reads the authority of a state, or makes one: on the first
// start, and in a copy of a state, which is another state with another
// identity. The file is for its user only (mode 0600). The caller holds the
// lock of the state.
func OpenAuthority(path, state string) (*Authority, error) {
	text, err := ReadPrivate(path, maxAuthorityFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makeAuthority(path, state)
	case err != nil:
		return nil, err
	}
	a, of, err := parseAuthority(text)
	if err != nil {
		return nil,
			fmt.Errorf("%s is damaged (%w); remove it, then pilots that run are given up and others are started", path, err)
	}
	if of != state {
		return makeAuthority(path, state)
	}
	return a, nil
}

const maxAuthorityFile = 16 << 10

func parseAuthority(text []byte) (a *Authority, state string, err error) {
	first, rest := pem.Decode(text)
	second, _ := pem.Decode(rest)
	if first == nil || second == nil || first.Type != keyBlock || second.Type != certificateBlock {
		return nil, "", errors.New("it does not hold a key and a certificate")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(first.Bytes)
	if err != nil {
		return nil, "", err
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return nil, "", errors.New("the key is not of the kind ed25519")
	}
	certificate, err := x509.ParseCertificate(second.Bytes)
	if err != nil {
		return nil, "", err
	}
	if public, ok := certificate.PublicKey.(ed25519.PublicKey); !ok || !public.Equal(key.Public()) {
		return nil, "", errors.New("key and certificate do not belong together")
	}
	return newAuthority(key, certificate), first.Headers[stateHeader], nil
}

func newAuthority(key ed25519.PrivateKey, certificate *x509.Certificate) *Authority {
	a := &Authority{key: key, certificate: certificate}
	a.tickets = a.Key("tickets of attempts")
	a.shares = a.Key("files in the caches of pilots")
	return a
}

// Key is a secret for a purpose. It is the same for all servers of the state, and
// tells nothing of the secrets for other purposes.
func (a *Authority) Key(purpose string) [sha256.Size]byte {
	derive := hmac.New(sha256.New, a.key.Seed())
	derive.Write([]byte("fairway: " + purpose))
	return [sha256.Size]byte(derive.Sum(nil))
}

func makeAuthority(path, state string) (*Authority, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := certified("fairway state "+state, public, key)
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: keyBlock, Headers: map[string]string{stateHeader: state}, Bytes: encoded})
	text = append(text, pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: certificate.Raw})...)
	if err := WritePrivate(path, text); err != nil {
		return nil, err
	}
	return newAuthority(key, certificate), nil
}

// NewAuthority is an authority of this process alone, which is written nowhere: that of
// a pilot that serves files to others.
func NewAuthority(name string) (*Authority, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	certificate, err := certified(name, public, key)
	if err != nil {
		return nil, err
	}
	return newAuthority(key, certificate), nil
}

// certified is a certificate that a key gives to itself, and that signs others.
func certified(name string, public ed25519.PublicKey, key ed25519.PrivateKey) (*x509.Certificate, error) {
	template := certificateOf(name)
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	signed, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		return nil, err
	}
	return x509.ParseCertificate(signed)
}

// certificateOf is a certificate without an end: it is good as long as the
// file that pins it, whatever a clock says.
func certificateOf(name string) *x509.Certificate {
	var serial [16]byte
	_, _ = rand.Read(serial[:]) // never fails
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetBytes(serial[:]),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC),
		NotAfter:     time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC),
	}
}

// Pin is by what pilots know the servers of this authority.
func (a *Authority) Pin() string { return pinOf(a.certificate) }

// Certificate is what other programs than a pilot know the servers of this authority
// by, in PEM. It is no secret.
func (a *Authority) Certificate() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: a.certificate.Raw})
}

// maxHostName is the longest name of a host.
const maxHostName = 255

const pinScheme = "sha256:"

func pinOf(certificate *x509.Certificate) string {
	sum := sha256.Sum256(certificate.Raw)
	return pinScheme + hex.EncodeToString(sum[:])
}

// ServerTLS returns the TLS settings of a server, with a key and a certificate
// that are made for it and never written down. names are the hosts and addresses where
// it is reached: a pilot does not look at them, and other programs do.
func (a *Authority) ServerTLS(names ...string) (*tls.Config, error) {
	return a.tlsAs(ServerName, names)
}

// StandbyTLS is ServerTLS for a server that stands by.
func (a *Authority) StandbyTLS(names ...string) (*tls.Config, error) {
	return a.tlsAs(StandbyName, names)
}

func (a *Authority) tlsAs(as string, names []string) (*tls.Config, error) {
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificateOf(as)
	template.DNSNames = []string{as}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if isHeader(name, maxHostName) {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	signed, err := x509.CreateCertificate(rand.Reader, template, a.certificate, public, a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		NextProtos:   []string{"http/1.1"},
		Certificates: []tls.Certificate{{Certificate: [][]byte{signed, a.certificate.Raw}, PrivateKey: key}},
	}, nil
}

// ErrOtherServer says that whoever answers at an address is not the server of
// the connection file.
var ErrOtherServer = errors.New("another server answers there: its certificate is not that of the connection file")

// ErrStandsBy says that a server answers at an address which stands by: another one of the same state is
// active, or will be.
var ErrStandsBy = errors.New("a server answers there that stands by")

// ClientTLS are the TLS settings by which somebody talks to the servers of the
// authority with this pin, and to nobody else.
func ClientTLS(pin string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"http/1.1"},
		ServerName: ServerName,
		// The pin takes the place of the authorities of the system.
		InsecureSkipVerify: true,
		VerifyConnection:   func(state tls.ConnectionState) error { return verify(state.PeerCertificates, pin) },
	}
}

// verify makes sure that the first certificate is of a server and was signed by
// the one with the pin.
func verify(chain []*x509.Certificate, pin string) error {
	roots := x509.NewCertPool()
	for _, c := range chain {
		if pinOf(c) == pin {
			roots.AddCert(c)
		}
	}
	if len(chain) == 0 {
		return ErrOtherServer
	}
	is := func(name string) error {
		_, err := chain[0].Verify(x509.VerifyOptions{
			DNSName: name, Roots: roots, CurrentTime: chain[0].NotBefore,
			KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		})
		return err
	}
	err := is(ServerName)
	if err != nil && is(StandbyName) == nil {
		return ErrStandsBy
	}
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrOtherServer, err)
	}
	return nil
}

// ReadPrivate reads a file with secrets, of at most so many bytes. One that others could
// have written or read is refused.
func ReadPrivate(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, unix.ELOOP) {
		return nil,
			fmt.Errorf("%s is a link, and files with secrets are not read through links: put the file itself there", path)
	}
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	var st unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &st); err != nil {
		return nil, err
	}
	switch user := os.Geteuid(); {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%s is not a regular file", path)
	case user != 0 && int(st.Uid) != user:
		return nil, fmt.Errorf("%s belongs to another user, so it is not read; make a copy of your own", path)
	case st.Mode&0o077 != 0:
		return nil, fmt.Errorf("%s holds a secret and others may read it: `chmod 600` it", path)
	case st.Size > limit:
		return nil, fmt.Errorf("%s has %d bytes, more than the %d of any such file", path, st.Size, limit)
	}
	text := make([]byte, st.Size)
	n, err := file.ReadAt(text, 0)
	if int64(n) == st.Size {
		err = nil
	}
	return text[:n], err
}

// WritePrivate replaces a file by one that only its user may read, complete and durable, or
// not at all.
func WritePrivate(path string, text []byte) error { return disk.Replace(path, text, 0o600) }
