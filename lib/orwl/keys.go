package orwl

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// KeyLife is how long the certificates of WriteKeys are good.
const KeyLife = 30 * 24 * time.Hour

// Keys are the files of a process of a group, as LoadTLS takes them.
func Keys(folder string, process int) (certificate, key, authorities string) {
	name := filepath.Join(folder, fmt.Sprint("process-", process))
	return name + ".pem", name + ".key", filepath.Join(folder, "authority.pem")
}

// WriteKeys makes what LoadTLS loads, for each process of a group on several hosts. The certificate of a
// process is good for the host of its address alone, so nobody else can stand in for it. The folder is
// made, with mode 0700, and may not be there yet; a process needs its own two files and that of the
// authority. The key of the authority is kept nowhere: a further process needs new keys for all.
func WriteKeys(folder string, addresses []string) error {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return fmt.Errorf("keys of a group: %w", err)
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return fmt.Errorf("keys of a group: %w", err)
	}
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "orwl group"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign,
	}
	_, _, file := Keys(folder, 0)
	if err := sign(file, authority, authority, public, private); err != nil {
		return err
	}
	for i, address := range addresses {
		if err := writeKey(folder, i, address, authority, private); err != nil {
			return fmt.Errorf("keys of process %d, at %s: %w", i, address, err)
		}
	}
	return nil
}

func writeKey(folder string, process int, address string, authority *x509.Certificate, by ed25519.PrivateKey) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	if host == "" {
		return errors.New("it names no host: write host:port as the others dial it")
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	own := &x509.Certificate{
		SerialNumber: big.NewInt(int64(process) + 2), Subject: pkix.Name{CommonName: fmt.Sprint("process ", process)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		own.IPAddresses = []net.IP{ip}
	} else {
		own.DNSNames = []string{host}
	}
	certificate, key, _ := Keys(folder, process)
	if err := sign(certificate, own, authority, public, by); err != nil {
		return err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	return writePEM(key, "PRIVATE KEY", encoded)
}

func sign(file string, own, authority *x509.Certificate, public ed25519.PublicKey, by ed25519.PrivateKey) error {
	const clocks = time.Hour // by which those of the hosts may differ
	own.NotBefore, own.NotAfter = time.Now().Add(-clocks), time.Now().Add(KeyLife)
	encoded, err := x509.CreateCertificate(rand.Reader, own, authority, public, by)
	if err != nil {
		return err
	}
	return writePEM(file, "CERTIFICATE", encoded)
}

func writePEM(file, kind string, encoded []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: encoded}), 0o600)
}
