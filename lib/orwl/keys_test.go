package orwl

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Processes with keys that WriteKeys made reach each other, and a key is good for its own host alone.
func TestKeysWithHostAddresses(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "keys")
	addresses := append(freeAddresses(t, "tcp", 2), "node-7.example.org:7000")
	must(t, WriteKeys(folder, addresses))
	if err := WriteKeys(folder, addresses); err == nil {
		t.Error("keys that are there were written over")
	}
	var both, read sync.WaitGroup // each stays until the other one has read
	read.Add(2)
	for i := range 2 {
		tls, err := LoadTLS(Keys(folder, i))
		must(t, err)
		both.Go(func() {
			reading := sync.OnceFunc(read.Done)
			defer reading()
			g := Group{Addresses: addresses[:2], Process: i, TLS: tls, Patience: time.Minute}
			m, err := g.Join(background, newLocation(t, []string{"a", "b"}[i], 8))
			if err != nil {
				t.Error(err)
				return
			}
			other, err := m.Resource(background, []string{"b", "a"}[i])
			if err == nil {
				err = ReadOnce(background, other, func([]byte) error { return nil })
			}
			if err != nil {
				t.Error(err)
			}
			reading()
			read.Wait()
			if err := m.Finish(background); err != nil {
				t.Error(err)
			}
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	tls, err := LoadTLS(Keys(folder, 2))
	must(t, err)
	leaf, err := x509.ParseCertificate(tls.Certificates[0].Certificate[0])
	must(t, err)
	if err := leaf.VerifyHostname("node-7.example.org"); err != nil {
		t.Error(err)
	}
	if leaf.VerifyHostname("127.0.0.1") == nil {
		t.Error("the key of one host is good for another")
	}
	_, key, _ := Keys(folder, 2)
	if info, err := os.Stat(key); err != nil || info.Mode().Perm() != 0o600 {
		t.Error(info.Mode(), err)
	}
	err = WriteKeys(filepath.Join(t.TempDir(), "keys"), []string{":7000"})
	if err == nil || !strings.Contains(err.Error(), "names no host") {
		t.Error(err)
	}
}
