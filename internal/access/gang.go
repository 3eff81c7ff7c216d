//go:build linux

package access

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"

	"fairway/internal/wire"
)

// GrantGangs puts keys into an answer by which the members of a gang know each other over TLS. Each
// attempt of a gang has an authority of its own, whose key is written nowhere: it follows from that of
// the state. So each member gets the same, however often it asks, also of another server.
func (a *Authority) GrantGangs(answer *wire.SyncAnswer) error {
	for _, start := range answer.GetBegin() {
		if err := a.grantGang(start); err != nil {
			return fmt.Errorf("keys of a gang: %w", err)
		}
	}
	return nil
}

func (a *Authority) grantGang(start *wire.GangStart) error {
	start.Name = fmt.Sprintf("%x-%x", a.gangSecret("name", start.GetLeader(), 0)[:8], start.GetLeader())
	authority := ed25519.NewKeyFromSeed(a.gangSecret("authority", start.GetLeader(), 0))
	template := a.gangCertificate(start.GetLeader(), -1)
	template.Subject.CommonName = "fairway gang " + start.GetName()
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	signed, err := x509.CreateCertificate(rand.Reader, template, template, authority.Public(), authority)
	if err != nil {
		return err
	}
	start.Authority = pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: signed})
	return a.grantMember(start, template, authority)
}

// grantMember makes the certificate of a member, which is good at its address, and its key.
func (a *Authority) grantMember(start *wire.GangStart, by *x509.Certificate, authority ed25519.PrivateKey) error {
	task := start.GetTask()
	key := ed25519.NewKeyFromSeed(a.gangSecret("member", start.GetLeader(), task))
	template := a.gangCertificate(start.GetLeader(), task)
	template.Subject.CommonName = fmt.Sprintf("task %d", task)
	template.DNSNames = []string{ServerName}
	if int(task) < len(start.GetMembers()) {
		if ip := net.ParseIP(start.GetMembers()[task].GetHost()); ip != nil {
			template.IPAddresses = []net.IP{ip}
		}
	}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	signed, err := x509.CreateCertificate(rand.Reader, template, by, key.Public(), authority)
	if err != nil {
		return err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	start.Certificate = pem.EncodeToMemory(&pem.Block{Type: certificateBlock, Bytes: signed})
	start.Key = pem.EncodeToMemory(&pem.Block{Type: keyBlock, Bytes: encoded})
	return nil
}

// gangSecret is what follows for a purpose and a member of a gang from the key of the state.
func (a *Authority) gangSecret(purpose string, leader uint64, task int32) []byte {
	secret := a.Key("gangs: " + purpose)
	derive := hmac.New(sha256.New, secret[:])
	var of [12]byte
	binary.BigEndian.PutUint64(of[:8], leader)
	binary.BigEndian.PutUint32(of[8:], uint32(task))
	derive.Write(of[:])
	return derive.Sum(nil)
}

// gangCertificate is a certificate whose number follows from whose it is: one that is made twice is
// the same.
func (a *Authority) gangCertificate(leader uint64, task int32) *x509.Certificate {
	c := certificateOf("")
	c.Subject = pkix.Name{}
	c.SerialNumber = new(big.Int).SetBytes(a.gangSecret("number", leader, task)[:16])
	return c
}
