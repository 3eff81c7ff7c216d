package view

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"
)

func needsViews(t testing.TB) {
	t.Helper()
	if err := Possible(); err != nil {
		t.Skip(err)
	}
}

// viewOf runs a command with a view, and returns what it prints.
func viewOf(t testing.TB, v *View, dir, command string) string {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	attr := &syscall.ProcAttr{Dir: dir, Env: os.Environ(), Files: []uintptr{write.Fd(), write.Fd(), write.Fd()}}
	path, argv, done, err := v.Command("/bin/sh", []string{"sh", "-c", command}, attr)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := syscall.ForkExec(path, argv, attr)
	done()
	_ = write.Close()
	if err != nil {
		t.Fatal(err)
	}
	text := new(strings.Builder)
	buffer := make([]byte, 4096)
	for {
		n, err := read.Read(buffer)
		text.Write(buffer[:n])
		if err != nil {
			break
		}
	}
	_, _ = syscall.Wait4(pid, nil, 0, nil)
	return strings.TrimSpace(text.String())
}

func TestView(t *testing.T) {
	needsViews(t)
	root := t.TempDir()
	for _, folder := range []string{"/state/own", "/state/other", "/away"} {
		if err := os.MkdirAll(root+folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{
		"/state/secret", "/state/own/in", "/state/other/in", "/state/input", "/away/key", "/away/open",
	} {
		if err := os.WriteFile(root+file, []byte("contents"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(root+"/state", root+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(root+"/away", root+"/state/through"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(root+"/away/in", []byte("contents"), 0o644); err != nil {
		t.Fatal(err)
	}
	v := &View{
		Hidden: []string{root + "/link", root + "/state/other", root + "/away/key", root + "/nothing"},
		Shown:  []string{root + "/state/own", root + "/state/input", root + "/away/open", root + "/state/gone", root + "/link/through/in", root + "/state/through/in"},
	}
	defer func() {
		if text, err := os.ReadFile(root + "/away/key"); err != nil || string(text) != "contents" {
			t.Error(string(text), err)
		}
	}()
	for command, want := range map[string]string{
		"cat in":                                        "contents",
		"cat ../input":                                  "contents",
		"cat ../secret":                                 "No such file",
		"ls ../other":                                   "No such file",
		"cat " + root + "/away/key":                     "",
		"echo x > " + root + "/away/key":                "",
		"cat " + root + "/link/through/in":              "contents",
		"cat " + root + "/away/open":                    "contents",
		"echo x > ../new":                               "ead-only file system",
		"echo x > new && cat new":                       "x",
		"umount " + root + "/state":                     "",
		"umount -l " + root + "/state; ls ..":           "input\nown\nthrough",
		"cat /proc/$PPID/root" + root + "/state/secret": "ermission denied",
		"cat /proc/$PPID/environ | wc -c":               "ermission denied",
		"unshare -rm sh -c 'umount " + root + "/state; cat ../secret' 2>&1": "No such file",
		"pwd": root + "/state/own",
	} {
		if got := viewOf(t, v, root+"/state/own", command); !strings.Contains(got, want) ||
			strings.Contains(command, "secret") && strings.Contains(got, "contents") {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	if text, err := os.ReadFile(root + "/state/own/new"); err != nil || string(text) != "x\n" {
		t.Error(string(text), err)
	}
}

// BenchmarkView is what a view costs beside the same command without.
func BenchmarkView(b *testing.B) {
	needsViews(b)
	root := b.TempDir()
	b.Run("without", func(b *testing.B) {
		for b.Loop() {
			pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Dir: root})
			if err != nil {
				b.Fatal(err)
			}
			_, _ = syscall.Wait4(pid, nil, 0, nil)
		}
	})
	b.Run("with", func(b *testing.B) {
		var spent syscall.Rusage
		began := time.Duration(0)
		for b.Loop() {
			attr := &syscall.ProcAttr{Dir: root, Files: []uintptr{0, 1, 2}}
			path, argv, done, err := (&View{Hidden: []string{root}}).Command("/bin/true", []string{"true"}, attr)
			if err != nil {
				b.Fatal(err)
			}
			pid, err := syscall.ForkExec(path, argv, attr)
			done()
			if err != nil {
				b.Fatal(err)
			}
			_, _ = syscall.Wait4(pid, nil, 0, &spent)
			began += time.Duration(spent.Utime.Nano() + spent.Stime.Nano())
		}
		b.ReportMetric(float64(began.Microseconds())/float64(b.N), "cpu-µs/op")
	})
}
