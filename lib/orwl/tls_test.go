package orwl

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"
)

// certificate returns one that signs itself, and a pool that trusts it.
func certificate(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	parsed, err := x509.ParseCertificate(der)
	must(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestTLS(t *testing.T) {
	cert, pool := certificate(t)
	l := newLocation(t, "l", 300_000)
	s := new(Server)
	s.Add(l)
	listener := listen(t, "tcp")
	go s.ServeTLS(listener, &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	})
	t.Cleanup(s.Close)
	address := listener.Addr().String()
	d := Dialer{TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}}}
	p, err := d.Dial(background, "tcp", address)
	must(t, err)
	t.Cleanup(func() { p.Close() })
	m := mirror(t, p, "l")
	for i := range 20 {
		write(t, m, func(b []byte) { b[i*10_000] = byte(i + 1) })
		write(t, l, func(b []byte) { b[i*10_000+1] = byte(i + 1) })
	}
	for _, r := range []Resource{l, m} {
		got := read(t, r)
		for i := range 20 {
			if got[i*10_000] != byte(i+1) || got[i*10_000+1] != byte(i+1) {
				t.Fatalf("%T: byte %d is wrong", r, i*10_000)
			}
		}
	}
	// Without a certificate nobody gets in.
	d.TLS = &tls.Config{RootCAs: pool}
	if p, err := d.Dial(background, "tcp", address); err == nil {
		_, err = p.Mirror(background, "l")
		if err == nil {
			t.Fatal("a client without a certificate was let in")
		}
	}
}

// Who dials without TLS where it is spoken, or with it where it is not, learns so at once, also
// with patience.
func TestDialWithAndWithoutTLSSaysSo(t *testing.T) {
	cert, pool := certificate(t)
	s := new(Server)
	encrypted, plain := listen(t, "tcp"), listen(t, "tcp")
	go s.ServeTLS(encrypted, &tls.Config{Certificates: []tls.Certificate{cert}})
	go s.Serve(plain)
	t.Cleanup(s.Close)
	d := Dialer{Patience: time.Hour}
	if _, err := d.Dial(background, "tcp", encrypted.Addr().String()); err == nil ||
		!strings.Contains(err.Error(), "Dialer.TLS") {
		t.Errorf("without TLS: %v", err)
	}
	d = Dialer{TLS: &tls.Config{RootCAs: pool}}
	if _, err := d.Dial(background, "tcp", plain.Addr().String()); err == nil || !strings.Contains(err.Error(), "TLS") {
		t.Errorf("with TLS: %v", err)
	}
}
