package storagetest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Required is the environment variable that makes a test fail, and not be skipped,
// where a server is not installed.
const Required = "FAIRWAY_TEST_STORAGE"

// Host is who starts a server: a test, or another program that stands in for one.
type Host interface {
	TempDir() string
	Cleanup(f func())
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Skip(args ...any)
	Skipf(format string, args ...any)
}

func program(t Host, name, from string) string {
	for _, candidate := range []string{name, "/usr/sbin/" + name, os.Getenv("FAIRWAY_BIN") + "/" + name} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path
		}
	}
	if os.Getenv(Required) != "" {
		t.Fatalf("%s is not installed: %s", name, from)
	}
	t.Skipf("%s is not installed: %s", name, from)
	return ""
}

func freePort(t Host) int {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// serve runs a server until the test ends, and returns when it takes connections at
// all its ports.
func serve(t Host, c *exec.Cmd, ports ...int) {
	var said bytes.Buffer
	c.Stdout, c.Stderr = &said, &said
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	for range 3000 {
		if len(ports) == 0 {
			return
		}
		connection, err := net.Dial("tcp4", fmt.Sprint("127.0.0.1:", ports[0]))
		if err == nil {
			_ = connection.Close()
			ports = ports[1:]
			continue
		}
		select {
		case <-ended:
			t.Fatalf("%s ended: %s", c.Path, said.String())
		default:
		}
		<-time.After(10 * time.Millisecond)
	}
	t.Fatalf("%s does not listen: %s", c.Path, said.String())
}

// open gives a folder to a user that a server runs as.
func open(t Host, paths ...string) {
	for _, path := range paths {
		if err := os.MkdirAll(path, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
}

// short is a folder whose path is short enough for sockets in it.
func short(t Host) string {
	folder, err := os.MkdirTemp("", "fw")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	open(t, folder)
	return folder
}

func tiny(t Host) string {
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	folder := short(t)
	if err := syscall.Mount("fairway-test", folder, "tmpfs", 0, "size=2m"); err != nil {
		t.Skip("no tmpfs here:", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) })
	open(t, folder)
	return folder
}

// WebDAV starts nginx and returns host and port.
func WebDAV(t Host) string { return webDAV(t, short(t)) }

// FullWebDAV is WebDAV on a disk of 2 MiB.
func FullWebDAV(t Host) string { return webDAV(t, tiny(t)) }

func webDAV(t Host, folder string) string {
	nginx := program(t, "nginx", "apt install nginx-light libnginx-mod-http-dav-ext")
	const module = "/usr/lib/nginx/modules/ngx_http_dav_ext_module.so"
	if _, err := os.Stat(module); err != nil {
		program(t, "ngx_http_dav_ext_module.so", "apt install libnginx-mod-http-dav-ext")
	}
	port := freePort(t)
	open(t, folder+"/root", folder+"/tmp")
	as := ""
	if os.Getuid() == 0 {
		as = "user root;"
	}
	config := fmt.Sprintf(`load_module %s; daemon off; pid %[2]s/pid; error_log stderr; %[4]s
events { worker_connections 256; }
http { access_log off; root %[2]s/root; client_body_temp_path %[2]s/tmp; client_max_body_size 0; proxy_temp_path %[2]s/p; fastcgi_temp_path %[2]s/f; uwsgi_temp_path %[2]s/u; scgi_temp_path %[2]s/s;
 server { listen 127.0.0.1:%[3]d; location / { dav_methods PUT DELETE MKCOL COPY MOVE; dav_ext_methods PROPFIND OPTIONS; } } }`, module, folder, port, as)
	if err := os.WriteFile(folder+"/conf", []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	serve(t, exec.Command(nginx, "-p", folder, "-c", folder+"/conf"), port)
	return fmt.Sprint("127.0.0.1:", port)
}

// Rclone starts rclone, which serves a folder with WebDAV, and returns host and port.
func Rclone(t Host) string {
	rclone := program(t, "rclone", "apt install rclone")
	folder, port := short(t), freePort(t)
	open(t, folder+"/root")
	address := fmt.Sprint("127.0.0.1:", port)
	serve(t, exec.Command(rclone, "serve", "webdav", "--config", folder+"/conf", "--cache-dir", folder+"/cache", "--addr",
		address, folder+"/root"), port)
	return address
}

// XRootD starts an XRootD server and returns host and port of both its protocols,
// and the folder that is /store there.
func XRootD(t Host) (root, http, store string) { return xrootd(t, short(t), "") }

// ClosedXRootD is XRootD for those who say which user they are.
func ClosedXRootD(t Host) (root string) {
	root, _, _ = xrootd(t, short(t), "xrootd.seclib libXrdSec.so\nsec.protocol unix\nsec.protbind * only unix\n")
	return root
}

// FullXRootD is XRootD on a disk of 2 MiB.
func FullXRootD(t Host) (root, http, store string) { return xrootd(t, tiny(t), "") }

func xrootd(t Host, export, more string) (root, http, store string) {
	xrootd := program(t, "xrootd", "apt install xrootd-server")
	program(t, "xrdcp", "apt install xrootd-client")
	folder, port, web := short(t), freePort(t), freePort(t)
	open(t, export, export+"/store", folder+"/admin", folder+"/run")
	config := fmt.Sprintf(`all.role server
all.export /store
oss.localroot %[4]s
all.adminpath %[1]s/admin
all.pidpath %[1]s/run
xrd.port %[2]d
xrd.network nodnr
xrootd.chksum max 2 adler32 crc32 md5
xrd.protocol XrdHttp:%[3]d libXrdHttp.so
http.selfhttps2http no
%[5]s`, folder, port, web, export, more)
	if err := os.WriteFile(folder+"/cfg", []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	arguments := []string{"-c", folder + "/cfg", "-l", folder + "/log", "-n", "t", "-I", "v4"}
	if _, err := user.Lookup("xrootd"); err == nil && os.Getuid() == 0 {
		arguments = append(arguments, "-R", "xrootd")
	}
	serve(t, exec.Command(xrootd, arguments...), port, web)
	return fmt.Sprint("127.0.0.1:", port), fmt.Sprint("127.0.0.1:", web), filepath.Join(export, "store")
}

// The keys of the server that S3 starts.
const (
	AccessKey = "fairwaytest"
	SecretKey = "secret-of-the-test"
)

// S3 starts versitygw and returns host and port, and the folder in which folders
// are buckets.
func S3(t Host) (address, buckets string) { return s3(t, t.TempDir()) }

// FullS3 is S3 on a disk of 2 MiB.
func FullS3(t Host) (address, buckets string) { return s3(t, tiny(t)) }

func s3(t Host, folder string) (string, string) {
	versity := program(t, "versitygw", "make test-storage installs it")
	port := freePort(t)
	c := exec.Command(versity, "--port", fmt.Sprint("127.0.0.1:", port), "--region", "us-east-1", "posix", folder)
	c.Env = append(clean(os.Environ()), "ROOT_ACCESS_KEY="+AccessKey, "ROOT_SECRET_KEY="+SecretKey)
	serve(t, c, port)
	return fmt.Sprint("127.0.0.1:", port), folder
}

func clean(environment []string) (kept []string) {
	for _, entry := range environment {
		if !strings.HasPrefix(entry, "AWS_") {
			kept = append(kept, entry)
		}
	}
	return kept
}
