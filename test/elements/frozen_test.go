package elements

import (
	"bufio"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"fairway/internal/storage/storagetest"
	"fairway/test/files"
)

// door leads to a server. While it is shut, connections are taken and nothing comes back,
// as from a server that was stopped.
type door struct {
	address string
	mu      sync.Mutex // guards shut
	shut    bool
}

func newDoor(t *testing.T, server string) *door {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := &door{address: listener.Addr().String()}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = client.Close() })
			d.mu.Lock()
			shut := d.shut
			d.mu.Unlock()
			if shut {
				continue
			}
			behind, err := net.Dial("tcp4", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			for _, pair := range [][2]net.Conn{{client, behind}, {behind, client}} {
				go func() {
					_, _ = io.Copy(pair[0], pair[1])
					_, _ = client.Close(), behind.Close()
				}()
			}
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		group.Wait()
	})
	return d
}

func (d *door) set(shut bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shut = shut
}

// A run whose storage does not answer says so and answers questions meanwhile; a signal
// ends it, and when the server is back all is there.
func TestAFrozenStoreHoldsNobodyUp(t *testing.T) {
	address, buckets := storagetest.S3(t)
	if err := os.Mkdir(buckets+"/bucket", 0o777); err != nil {
		t.Fatal(err)
	}
	d := newDoor(t, address)
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL_S3": "http://" + d.address, "AWS_REGION": "us-east-1",
		"AWS_ACCESS_KEY_ID": storagetest.AccessKey, "AWS_SECRET_ACCESS_KEY": storagetest.SecretKey,
	} {
		t.Setenv(name, value)
	}
	folder := t.TempDir()
	files.Write(t, folder+"/workflow.yaml", `workflow: frozen
steps:
  one: {writes: a.txt, command: 'echo a > "$out"'}
  two: {merge: a.txt, writes: b.txt, command: 'cat a.txt > "$out"'}
`)
	if out, err := run(folder, nil, "run", "--storage", "s3://bucket/x"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	d.set(true)
	c := exec.Command(fairway, "run", "--storage", "s3://bucket/x")
	c.Dir = folder
	said, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	defer func() {
		if !ended {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}()
	lines := bufio.NewScanner(said)
	for told := false; !told; told = strings.Contains(lines.Text(), "s3://bucket is slow to answer") {
		if !lines.Scan() {
			t.Fatal("the run did not say what it waits for")
		}
	}
	if out, err := run(folder, nil, "jobs"); err != nil || !strings.Contains(out, "two") {
		t.Errorf("%v\n%s", err, out)
	}
	began := time.Now()
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(said)
	_ = c.Wait()
	ended = true
	t.Logf("it ended %s after the signal:\n%s", time.Since(began), rest)
	d.set(false)
	if out, err := run(folder, nil, "run", "--storage", "s3://bucket/x"); err != nil || strings.Contains(out, "lost") {
		t.Errorf("%v\n%s", err, out)
	}
}
