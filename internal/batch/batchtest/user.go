package batchtest

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
)

// innerVariable is set where a test runs as an ordinary user.
const innerVariable = "FAIRWAY_TEST_AS_USER"

// Again reports whether this is the process in which RunAs runs a test.
func Again() bool { return os.Getenv(innerVariable) != "" }

// RunAs runs the calling test once more, in a process of an ordinary user. The folder is one that all
// may read.
func RunAs(t *testing.T, name, folder string) {
	t.Helper()
	own := filepath.Join(folder, "own")
	uid, gid := Account(t, name)
	text, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.Mkdir(own, 0o755)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, "again"), text, 0o755)
	}
	if err == nil {
		err = os.Chown(own, int(uid), int(gid))
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), filepath.Join(folder, "again"), "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), innerVariable+"="+name, "HOME="+own, "TMPDIR="+own, "USER="+name, "LOGNAME="+name)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as %s: %v\n%s", name, err, out)
	}
}

// Account are the numbers of a user and its group.
func Account(t Host, name string) (uid, gid uint32) {
	found, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	number := func(text string) uint32 {
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		return uint32(n)
	}
	return number(found.Uid), number(found.Gid)
}
