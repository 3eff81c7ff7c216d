// Package orwltest stands in for a pilot: it writes the files from which tasks of a gang learn who
// they are (orwl.Join), for tests and benchmarks of programs that join one, and for running such a
// program by hand.
package orwltest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Gang says who the tasks of a gang are.
type Gang struct {
	Tasks int
	// Attempt is different for each attempt; empty means a random name.
	Attempt string
	// Hosts are where the tasks run, by task; nil means this machine for all. Tasks of a host that
	// is not this machine listen at FirstPort and the port after it, so there is one on each.
	Hosts []string
	// Folders are where the tasks keep checkpoints; they have them in turn. Nil means none.
	Folders []string
}

// FirstPort is where a task on a host of its own listens.
const FirstPort = 7001

// member is a task in the file of each.
type member struct {
	Task  int    `json:"task"`
	Host  string `json:"host"`
	Ports []int  `json:"ports"`
}

// Write writes the files of a gang, with keys that are good for a day, into a folder, and returns
// the paths by task: the values of orwl.GangVariable. Ports of this machine were free a moment ago.
func (g Gang) Write(folder string) (paths []string, err error) {
	members := make([]member, g.Tasks)
	listeners := make([]net.Listener, 0, 2*g.Tasks)
	defer func() {
		for _, l := range listeners {
			err = errors.Join(err, l.Close())
		}
	}()
	for k := range members {
		members[k] = member{Task: k, Host: "127.0.0.1"}
		if g.Hosts != nil {
			members[k].Host, members[k].Ports = g.Hosts[k], []int{FirstPort, FirstPort + 1}
			continue
		}
		for range 2 {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return nil, err
			}
			listeners = append(listeners, l)
			members[k].Ports = append(members[k].Ports, l.Addr().(*net.TCPAddr).Port)
		}
	}
	if g.Attempt == "" {
		g.Attempt = rand.Text()
	}
	cert, key, err := WriteKeys(folder)
	if err != nil {
		return nil, err
	}
	for k := range members {
		file := map[string]any{
			"tasks": g.Tasks, "task": k, "attempt": g.Attempt, "members": members, "cert": cert, "key": key, "ca": cert,
		}
		if len(g.Folders) > 0 {
			file["folder"] = g.Folders[k%len(g.Folders)]
		}
		text, err := json.Marshal(file)
		if err != nil {
			return nil, err
		}
		path := filepath.Join(folder, fmt.Sprintf("gang-%d.json", k))
		if err := os.WriteFile(path, text, 0o600); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

// WriteKeys writes a certificate that signs itself, and its key, into a folder.
func WriteKeys(folder string) (cert, key string, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		return "", "", err
	}
	bytes, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return "", "", err
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	write := func(path, kind string, b []byte) error {
		return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600)
	}
	return cert, key, errors.Join(write(cert, "CERTIFICATE", der), write(key, "EC PRIVATE KEY", bytes))
}
