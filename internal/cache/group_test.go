package cache

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/zeebo/blake3"

	"fairway/lib/subprocess"
)

// userVariable names the folder of a cache that this program is to be, for a test with several
// users.
const userVariable = "FAIRWAY_TEST_CACHE"

func hashOf(text string) Hash {
	h := blake3.New()
	_, _ = h.WriteString(text)
	return HashOf(h)
}

// ofUser is the cache of a user, in a process of its own, which does what it is told in lines. All
// files are made with the widest modes.
func ofUser(dir string) error {
	syscall.Umask(0)
	c, err := Open(Config{Dir: dir, Name: "pilot", MaxSpace: 1000, Shared: true, Group: true})
	if err != nil {
		return err
	}
	defer c.Close()
	fmt.Println(c.Dir())
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var what, x, text string
		_, _ = fmt.Sscan(lines.Text(), &what, &x, &text)
		switch what {
		case "peers":
			c.SetPeers(strings.Split(x, ","))
			fmt.Println("yes")
		case "fetch", "fetch-unproved":
			fmt.Println(fetched(c, x, text, what == "fetch"))
		case "add":
			path := filepath.Join(filepath.Dir(dir), "output")
			err := os.WriteFile(path, []byte(text), 0o600)
			fmt.Println(errors.Join(err, c.Add(context.Background(), item(x, int64(len(text))), path)))
		case "spoil":
			fmt.Println(spoiled(x))
		}
	}
	return nil
}

// fetched says how a file came that holds a text.
func fetched(c *Cache, lfn, text string, proved bool) string {
	hash := hashOf(text)
	known := hash
	if !proved {
		known = Hash{}
	}
	how := "was there"
	wanted := item(lfn, int64(len(text)))
	f, _, err := c.Fetch(context.Background(), wanted, func(path string) (int64, Hash, error) {
		ok, err := c.CopyFromGroup(context.Background(), wanted, known, path)
		if how = "copied"; ok || err != nil {
			return wanted.Size, hash, err
		}
		how = "brought"
		return wanted.Size, hash, os.WriteFile(path, []byte(text), 0o666)
	})
	if err != nil {
		return err.Error()
	}
	defer f.Release()
	if got, err := os.ReadFile(f.Path()); err != nil || string(got) != text {
		return fmt.Sprintf("%s as %q, %v", how, got, err)
	}
	return how
}

// spoiled says what a user may do in a folder, all of whose elements are tried.
func spoiled(folder string) string {
	var may []string
	try := func(what string, err error) {
		if err == nil {
			may = append(may, what)
		}
	}
	_ = filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		name, _ := filepath.Rel(folder, path)
		switch {
		case d.IsDir():
			try("make in "+name, os.WriteFile(filepath.Join(path, "made"), nil, 0o666))
			try("list "+name, func() error { _, err := os.ReadDir(path); return err }())
		default:
			f, err := os.OpenFile(path, os.O_WRONLY, 0)
			try("write "+name, err)
			_ = f.Close()
			f, err = os.Open(path)
			try("read "+name, err)
			_ = f.Close()
			try("remove "+name, os.Remove(path))
		}
		return nil
	})
	return strings.Join(may, ", ")
}

// Two users of one group, and one of another, with caches on one host.
func TestUsersOfAGroupReadEachOthersFiles(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs several users: run it as root")
	}
	folder, err := os.MkdirTemp("", "group")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	if err := os.Chmod(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	const group, other = 64100, 64200
	start := func(uid, gid int) (user *subprocess.Child, dir string) {
		t.Helper()
		scratch := filepath.Join(folder, fmt.Sprint(uid))
		if err := errors.Join(os.Mkdir(scratch, 0o750), os.Chown(scratch, uid, gid), os.Chmod(scratch, 0o750)); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("/proc/self/exe", "-test.run=^$") // the folder of this program is root's
		cmd.Env = append(os.Environ(), userVariable+"="+filepath.Join(scratch, "cache"))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		cmd.Dir = "/"
		user, err := subprocess.Start(cmd)
		if err == nil {
			t.Cleanup(user.Kill)
			dir, err = user.Hear()
		}
		if err != nil {
			t.Fatal(err)
		}
		return user, dir
	}
	ask := func(user *subprocess.Child, line, want string) {
		t.Helper()
		if got, err := user.Ask(line); err != nil || got != want {
			t.Errorf("%s: %q, %v; want %q", line, got, err, want)
		}
	}
	a, aDir := start(64101, group)
	b, bDir := start(64102, group)
	c, cDir := start(64103, other)
	all := "peers " + strings.Join([]string{aDir, bDir, cDir}, ",")
	for _, user := range []*subprocess.Child{a, b, c} {
		ask(user, all, "yes")
	}

	ask(a, "fetch in hello", "brought")
	ask(a, "add out result", "<nil>")
	ask(b, "fetch in hello", "copied")
	ask(b, "fetch out result", "copied")
	ask(b, "fetch in hello", "was there")
	ask(a, "fetch-unproved other text", "brought")
	ask(b, "fetch-unproved other text", "brought") // nothing tells whether it is right
	ask(c, "fetch in hello", "brought")

	// A member of the group may list the folder and read its files, and nothing else; others may not
	// even that.
	ask(b, "spoil "+filepath.Dir(aDir),
		"list ., list pilot, read pilot/.trust, read pilot/"+fileName(item("in", 5))+
			", read pilot/"+fileName(item("other", 4))+", read pilot/"+fileName(item("out", 6)))
	ask(c, "spoil "+filepath.Dir(aDir), "")

	// What its owner has changed is not taken, nor what another file stands in the place of.
	ask(a, "fetch changed right", "brought")
	if err := os.WriteFile(filepath.Join(aDir, fileName(item("changed", 5))), []byte("wrong"), 0o440); err != nil {
		t.Fatal(err)
	}
	ask(b, "fetch changed right", "brought")
	link := filepath.Join(aDir, fileName(item("linked", 4)))
	secret := filepath.Join(folder, "64102", "secret")
	pipe := filepath.Join(aDir, fileName(item("pipe", 4)))
	if err := errors.Join(os.WriteFile(secret, []byte("abcd"), 0o644), os.Symlink(secret, link),
		syscall.Mkfifo(pipe, 0o644)); err != nil {
		t.Fatal(err)
	}
	ask(b, "fetch linked abcd", "brought")
	ask(b, "fetch pipe abcd", "brought")

	// A folder with several wrong files is not looked into any more.
	for _, lfn := range []string{"x", "y", "z"} {
		wrong := filepath.Join(aDir, fileName(item(lfn, 4)))
		if err := errors.Join(os.WriteFile(wrong, []byte("bad!"), 0o440), os.Chmod(wrong, 0o444)); err != nil {
			t.Fatal(err)
		}
		ask(b, "fetch "+lfn+" good", "brought")
	}
	ask(a, "fetch last word", "brought")
	ask(b, "fetch last word", "brought")
}

// Without the key of the site, folders of other users are not followed.
func TestFoldersOfOtherUsersAreNotFollowed(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a folder away")
	}
	dir := t.TempDir()
	a, _ := open(t, dir, "a", shared)
	b, _ := open(t, dir, "b", shared)
	if err := os.Chown(b.Dir(), 64101, 64100); err != nil {
		t.Fatal(err)
	}
	put(t, b, "x", 10).Release()
	a.SetPeers([]string{b.Dir()})
	if _, ok := a.Get(t.Context(), item("x", 10)); ok || limitOf(a) != 100 {
		t.Error("a file of another user was linked")
	}
	hash := hashOf(strings.Repeat("\x00", 10))
	if ok, err := a.CopyFromGroup(t.Context(), item("x", 10), hash, filepath.Join(dir, "x")); ok {
		t.Error("it was copied:", err)
	}
}
