package folder

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestFolderThatMayNotBeWritten(t *testing.T) {
	if _, err := os.Stat("/sys/kernel"); err != nil {
		t.Skip("no sysfs, in which nobody may make a folder")
	}
	err := claimFolder("/sys/kernel/.fairway")
	if err == nil || !strings.Contains(err.Error(), "; keep state and results in another folder with --dir") {
		t.Error(err)
	}
}

// Hosts agree on the inode of a folder and on when a file in it was made, and on no number of a device that
// is counted at each mount.
func TestWhichFolderIsACopy(t *testing.T) {
	disk, network := unix.Mkdev(8, 1), unix.Mkdev(0, 45)
	made := func(made, changed int64) *birth { return &birth{Made: made, Changed: changed} }
	for _, test := range []struct {
		what    string
		was, is folderID
		same    bool
	}{
		{"the same", folderID{disk, 7, made(5, 5), 1, 9}, folderID{disk, 7, made(5, 5), 1, 9}, true},
		{"of an earlier version", folderID{disk, 7, nil, 0, 0}, folderID{disk, 7, nil, 1, 9}, true},
		{"of an earlier version, moved to another disk", folderID{disk, 7, nil, 0, 0}, folderID{network, 7, nil, 1, 9}, false},
		{"another inode", folderID{disk, 7, made(5, 5), 1, 9}, folderID{disk, 8, made(5, 5), 1, 9}, false},
		{"restored, where the inode was free", folderID{disk, 7, made(5, 5), 1, 9}, folderID{disk, 7, made(6, 6), 1, 9}, false},
		{"linked file by file, as cp -al does", folderID{disk, 7, made(5, 5), 1, 9}, folderID{disk, 7, made(5, 6), 1, 9}, true},
		{"mounted again", folderID{network, 7, made(0, 5), 1, 0}, folderID{network + 1, 7, made(0, 5), 1, 0}, true},
		{"copied to another server", folderID{network, 7, made(0, 5), 1, 0}, folderID{network + 1, 7, made(0, 6), 1, 0}, false},
		{"on the file server itself", folderID{network, 7, made(0, 5), 1, 0}, folderID{disk, 7, made(5, 5), 2, 9}, true},
		{"a snapshot of a subvolume", folderID{network, 7, made(5, 5), 1, 9}, folderID{network + 1, 7, made(5, 5), 1, 10}, false},
		{"on a disk with another number", folderID{unix.Mkdev(4000, 1), 7, made(5, 5), 1, 9}, folderID{disk, 7, made(5, 5), 1, 9}, true},
		{"another disk", folderID{unix.Mkdev(4000, 1), 7, made(5, 5), 1, 9}, folderID{disk, 7, made(5, 5), 1, 10}, false},
	} {
		if same := (&identity{folderID: test.was}).isOf(test.is); same != test.same {
			t.Errorf("%s: the same is %v", test.what, same)
		}
	}
}

// A disk that was copied as a whole is known by its number while the original is there.
func TestACopyOfADiskBesideIt(t *testing.T) {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(mounts)) {
		var major, minor uint32
		fields := strings.Fields(line)
		if n, _ := fmt.Sscanf(fields[2], "%d:%d", &major, &minor); n != 2 || major == 0 {
			continue
		}
		was := folderID{unix.Mkdev(major, minor), 7, &birth{5, 5}, 1, 9}
		is := was
		is.Device = unix.Mkdev(4000, 1)
		if (&identity{folderID: was}).isOf(is) {
			t.Error("it is taken for the original")
		}
		return
	}
	t.Skip("no disk is mounted")
}

// What people do to the files of a folder makes it no copy, nor does it a copy of it.
func TestAFolderStaysTheSame(t *testing.T) {
	dir := t.TempDir()
	claim := func() (id string) {
		t.Helper()
		lock, l, err := Claim(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
		return l.ID
	}
	id := claim()
	elsewhere := func() {
		t.Helper()
		i, err := readIdentity(filepath.Join(dir, StateFolder))
		if err != nil {
			t.Fatal(err)
		}
		i.Device, i.Birth.Made = unix.Mkdev(0, 4000), 0
		if err := i.write(filepath.Join(dir, StateFolder)); err != nil {
			t.Fatal(err)
		}
	}
	for _, did := range [][]string{
		{"chmod", "-R", "g+rX", dir}, {"cp", "-a", dir, t.TempDir()},
		{"touch", filepath.Join(dir, StateFolder, identityName)},
		{"sh", "-c", `mv "$0" "$0.aside" && mv "$0.aside" "$0"`, filepath.Join(dir, StateFolder)},
	} {
		elsewhere()
		if out, err := exec.Command(did[0], did[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v %s", did, err, out)
		}
		if l, err := Of(dir); err != nil || l.ID != id {
			t.Errorf("after %v it is %q, was %q: %v", did, l.ID, id, err)
		}
		if now := claim(); now != id {
			t.Fatalf("after %v it became another one", did)
		}
	}
}
