package storagetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"testing"
	"time"
)

// Certified is a certificate with its key: of an authority, a host or a user.
type Certified struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// Certify makes a certificate for localhost; by nil it is that of an authority.
func Certify(t *testing.T, name string, by *Certified) *Certified {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, with := template, key
	if by == nil {
		template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	} else {
		parent, with = by.certificate, by.key
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, with)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(signed)
	if err != nil {
		t.Fatal(err)
	}
	return &Certified{certificate, key}
}

// Write puts the certificate, and the key if that is wanted, into a file for this user
// alone, and returns the text.
func (c *Certified) Write(t *testing.T, path string, key bool) string {
	t.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.certificate.Raw})
	if key {
		raw, err := x509.MarshalPKCS8PrivateKey(c.key)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})...)
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Serves is how a host serves users whom an authority vouches for, and nobody else.
func (c *Certified) Serves(authority *Certified) *tls.Config {
	users := x509.NewCertPool()
	users.AddCert(authority.certificate)
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{c.certificate.Raw}, PrivateKey: c.key}},
		ClientAuth:   tls.RequireAndVerifyClientCert, ClientCAs: users,
	}
}
