package folder

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"fairway/internal/beneath"
	"fairway/internal/disk"
)

// identityName is the file that tells a state from every other one. It marks the
// folder as ours.
const identityName = "identity"

// identity is what stands in it. A copy of the folder bears the identity of the
// original, but is not the same folder: it gets one of its own.
type identity struct {
	ID     string `json:"id"`
	Former string `json:"former,omitempty"` // while a copy is being made one of its own
	folderID
}

// folderID tells the folder of a state from all others, wherever it is moved on its file system, and on
// whatever host that is mounted.
type folderID struct {
	Device uint64 `json:"device"`
	Inode  uint64 `json:"inode"`
	// Birth is of a link in the folder that nothing changes: copies of it are made later. nil: there is
	// none, as in states of earlier versions.
	Birth *birth `json:"birth,omitempty"`
	// Kind and Number are those of the file system. Number is 0 where it has none of its own.
	Kind   int64  `json:"kind,omitempty"`
	Number uint64 `json:"number,omitempty"`
}

// birth is when a file was made, in microseconds: file systems that are shared may round to these.
type birth struct {
	Made    int64 `json:"made,omitempty"` // 0: the file system does not tell
	Changed int64 `json:"changed"`        // its name, owner or mode
}

// birthName is the link whose birth tells a folder from its copies. A link, since people change the
// modes of all files of a folder, and these have none.
const birthName = "birth"

func identify(folder string) (folderID, error) {
	var st unix.Stat_t
	if err := unix.Stat(folder, &st); err != nil {
		return folderID{}, &fs.PathError{Op: "stat", Path: folder, Err: err}
	}
	id := folderID{Device: st.Dev, Inode: st.Ino}
	var err error
	if id.Birth, err = birthIn(folder); err != nil {
		return folderID{}, err
	}
	var system unix.Statfs_t
	if unix.Statfs(folder, &system) == nil {
		id.Kind = int64(system.Type)
		id.Number = uint64(uint32(system.Fsid.Val[0])) | uint64(uint32(system.Fsid.Val[1]))<<32
		if id.Number == id.Device { // as each host counts them
			id.Number = 0
		}
	}
	return id, nil
}

func birthIn(folder string) (*birth, error) {
	var st unix.Statx_t
	path := filepath.Join(folder, birthName)
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME|unix.STATX_CTIME, &st)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &fs.PathError{Op: "statx", Path: path, Err: err}
	}
	b := &birth{Changed: micros(st.Ctime)}
	if st.Mask&unix.STATX_BTIME != 0 {
		b.Made = micros(st.Btime)
	}
	return b, nil
}

func micros(t unix.StatxTimestamp) int64 { return t.Sec*1e6 + int64(t.Nsec)/1e3 }

// isOf reports whether a folder is that of the identity, and not a copy. A copy has neither the inode of
// the folder nor the birth of its link, unless it is one of a whole disk or subvolume: the numbers of
// devices and file systems tell these, as far as they are not each host's own.
func (i *identity) isOf(folder folderID) bool {
	was, is := cmp.Or(i.Birth, &birth{}), cmp.Or(folder.Birth, &birth{})
	told := was.Made != 0 && is.Made != 0
	switch {
	case i.Former != "", i.Inode != folder.Inode, told && was.Made != is.Made:
		return false
	case i.Device == folder.Device:
		return true
	case isOfDisk(i.Device) && isOfDisk(folder.Device) && isMounted(i.Device):
		return false
	case i.Kind == folder.Kind && i.Number != 0 && folder.Number != 0 && i.Number != folder.Number:
		return false
	}
	return told || i.Birth != nil && folder.Birth != nil && was.Changed == is.Changed
}

// isOfDisk reports whether a device number is that of a disk. File systems that are not on one disk, as
// those of a network, get the next free number at each mount, with major 0.
func isOfDisk(device uint64) bool { return unix.Major(device) != 0 }

// isMounted reports whether this host has a disk mounted, as far as this process sees.
func isMounted(device uint64) bool {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return true
	}
	number := fmt.Sprintf("%d:%d", unix.Major(device), unix.Minor(device))
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 2 && fields[2] == number {
			return true
		}
	}
	return false
}

// follow takes what the folder of the identity is known by here and now. It reports whether that is news.
func (i *identity) follow(folder folderID) (news bool) {
	if folder.Birth != nil && i.Birth != nil && folder.Birth.Made == 0 {
		folder.Birth.Made = i.Birth.Made // which another host has seen
	}
	news = !reflect.DeepEqual(i.folderID, folder)
	i.folderID = folder
	return news
}

var errDamagedIdentity = errors.New("is damaged: `fairway clean` removes the state, and leaves results/")

// readIdentity returns nil where there is none.
func readIdentity(state string) (*identity, error) {
	text, err := os.ReadFile(filepath.Join(state, identityName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	i := new(identity)
	if err := json.Unmarshal(text, i); err != nil || !filepath.IsLocal(i.ID) || strings.Contains(i.ID, "/") {
		return nil, fmt.Errorf("%s %w", filepath.Join(state, identityName), errDamagedIdentity)
	}
	return i, nil
}

// mendIdentity writes a damaged identity again. It is the one name that the state has in
// each of its folders; in those behind links others may have a folder too. Whether the
// state is a copy nobody knows any more, so it counts as one: what is behind links stays.
func mendIdentity(state string) error {
	folders, in := 0, map[string]int{}
	for _, name := range sharedNames {
		path := filepath.Join(state, name)
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			continue
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		folders++
		for _, entry := range entries {
			in[entry.Name()]++
		}
	}
	maps.DeleteFunc(in, func(_ string, n int) bool { return n < folders })
	if len(in) != 1 {
		return fmt.Errorf("%s is damaged, and nothing else tells which files are of this state: look into %s, and remove "+
			"it yourself", filepath.Join(state, identityName), state)
	}
	for name := range in {
		return (&identity{ID: name}).write(state)
	}
	return nil
}

// write is durable when it returns.
func (i *identity) write(state string) error {
	if err := i.begin(state); err != nil {
		return err
	}
	return disk.Sync(state)
}

// begin has the identity in its place, whole, and durable as soon as the folder is: for a state that
// has nothing yet, and whose store is made next, which brings the folder to disk.
func (i *identity) begin(state string) error {
	text, err := json.Marshal(i)
	if err != nil {
		return err
	}
	file, err := disk.CreateUnnamed(state, 0, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	if _, err := file.Write(append(text, '\n')); err != nil {
		return err
	}
	if err := disk.Flush(file.File); err != nil {
		return err
	}
	fresh := filepath.Join(state, identityName+".new")
	if err := IgnoreMissing(os.Remove(fresh)); err != nil {
		return err
	}
	if err := file.Link(fresh); err != nil {
		return err
	}
	return os.Rename(fresh, filepath.Join(state, identityName))
}

func unwritable(err error) error {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.EROFS) {
		return fmt.Errorf("%w; keep state and results in another folder with --dir", err)
	}
	return err
}

// claimFolder makes sure that the folder of a state is ours and for nobody else
// to look into, and makes it if need be.
func claimFolder(state string) error {
	if err := checkPath(state); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(state), 0o777); err != nil {
		return unwritable(err)
	}
	if err := os.Mkdir(state, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return unwritable(err)
	}
	mode, err := checkOurs(state)
	if err == nil && mode&0o077 != 0 {
		err = os.Chmod(state, 0o700)
	}
	return err
}

// checkPath refuses a path that neither records nor messages to pilots can hold.
func checkPath(path string) error {
	if utf8.ValidString(path) {
		return nil
	}
	return fmt.Errorf("the path %q is not UTF-8, so it cannot be recorded: rename the folder, or choose another one for "+
		"the state with --dir", path)
}

func missing(folder string) (folders []string) {
	for {
		if _, err := os.Lstat(folder); !errors.Is(err, fs.ErrNotExist) {
			return folders
		}
		folders = append(folders, folder)
		folder = filepath.Dir(folder)
	}
}

// CheckOurs returns what Claim would say of a folder whose state it refuses, and makes
// nothing. What has no state is in order.
func CheckOurs(workflow string) error {
	_, err := checkOurs(filepath.Join(workflow, StateFolder))
	return IgnoreMissing(err)
}

// checkOurs returns the mode of a state folder that is ours.
func checkOurs(state string) (mode uint32, err error) {
	var st unix.Stat_t
	if err := unix.Stat(state, &st); err != nil {
		return 0, &fs.PathError{Op: "stat", Path: state, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return 0, fmt.Errorf("%s is not a folder: move it away, or choose another folder for the state with --dir", state)
	}
	if err := checkOwner(state, &st); err != nil {
		return 0, err
	}
	return st.Mode, refuseForeign(state)
}

// checkOwner refuses the state of another user, for root too: what root makes in it could
// not be used by its owner any more.
func checkOwner(state string, st *unix.Stat_t) error {
	if int(st.Uid) == os.Geteuid() {
		return nil
	}
	return fmt.Errorf("%s belongs to user %s; work there as that user, or choose another folder with --dir", state,
		userName(st.Uid))
}

func userName(uid uint32) string {
	number := strconv.FormatUint(uint64(uid), 10)
	if found, err := user.LookupId(number); err == nil {
		return found.Username
	}
	return number
}

// CheckOwner returns an error if the state of a workflow's folder is there and belongs to
// another user.
func CheckOwner(workflow string) error {
	state := filepath.Join(workflow, StateFolder)
	var st unix.Stat_t
	if err := unix.Stat(state, &st); err != nil {
		return IgnoreMissing(&fs.PathError{Op: "stat", Path: state, Err: err})
	}
	return checkOwner(state, &st)
}

// ownNames are what a state folder may hold before it has an identity: links
// that people have made, and what a server that was killed at once has left.
var ownNames = append([]string{lockName, SocketName, birthName, identityName + ".new"}, sharedNames...)

func refuseForeign(state string) error {
	if _, err := os.Lstat(filepath.Join(state, identityName)); err == nil {
		return nil
	}
	if _, err := os.Lstat(filepath.Join(state, StoreFile)); err == nil {
		return fmt.Errorf("%s was written by an earlier version of Fairway, which this one does not read: "+
			"end the run with that version, or remove the state with `fairway clean`, which leaves results/", state)
	}
	entries, err := os.ReadDir(state)
	if err != nil {
		return err
	}
	var foreign []string
	for _, entry := range entries {
		if name := entry.Name(); !slices.Contains(ownNames, name) && !strings.HasPrefix(name, disk.PartPrefix) {
			foreign = append(foreign, name)
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	return fmt.Errorf("%s holds what Fairway has not put there (%s): move that away, or choose another folder for the "+
		"state with --dir",
		state, strings.Join(foreign[:min(len(foreign), 3)], ", "))
}

// claimState finds the identity of a state whose lock is held, or gives it one.
// A copy of another folder gets its own, and keeps its files.
func claimState(workflow string) (Layout, error) {
	state := filepath.Join(workflow, StateFolder)
	there, err := identify(state)
	if err != nil {
		return Layout{}, err
	}
	i, err := readIdentity(state)
	if err != nil {
		return Layout{}, err
	}
	fresh := i == nil || i.Former == "" && !i.isOf(there)
	if fresh || there.Birth == nil {
		if there, err = beBorn(state); err != nil {
			return Layout{}, fmt.Errorf("identity of %s: %w", state, err)
		}
	}
	switch {
	case i == nil:
		i = &identity{ID: newIdentity(), folderID: there}
		err = i.begin(state)
	case fresh:
		i = &identity{ID: newIdentity(), Former: i.ID, folderID: there}
		err = i.write(state)
	case i.Former == "" && i.follow(there):
		err = i.write(state)
	}
	if err == nil && i.Former != "" {
		err = i.takeOver(state)
	}
	if err != nil {
		return Layout{}, fmt.Errorf("identity of %s: %w", state, err)
	}
	f := layoutOf(workflow, i.ID)
	f.New = fresh
	if err := f.make(); err != nil {
		return Layout{}, err
	}
	return f, f.resolve()
}

// beBorn makes the link by whose birth a folder is known, and identifies the folder. A link that is there
// came with a copy.
func beBorn(state string) (folderID, error) {
	path := filepath.Join(state, birthName)
	if err := IgnoreMissing(os.Remove(path)); err != nil {
		return folderID{}, err
	}
	err := os.Symlink(identityName, path)
	if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, errors.ErrUnsupported) {
		return folderID{}, err // and else the file system has no links
	}
	return identify(state)
}

// memberLayout is the layout of a state that another member of its servers may have in use.
func memberLayout(workflow string, i *identity) (Layout, error) {
	state := filepath.Join(workflow, StateFolder)
	there, err := identify(state)
	switch {
	case err != nil:
		return Layout{}, err
	case !i.isOf(there):
		return Layout{}, fmt.Errorf("%s is a copy of the state of other servers, and is not ready for a server: start one "+
			"there alone first", state)
	}
	l := layoutOf(workflow, i.ID)
	if err := l.make(); err != nil {
		return Layout{}, err
	}
	return l, l.resolve()
}

// resolve names folders by the paths that the processes of jobs see, also where
// they are behind links.
func (f *Layout) resolve() (err error) {
	for _, path := range []*string{&f.Cache, &f.Sandbox, &f.Logs} {
		if *path, err = filepath.EvalSymlinks(*path); err != nil {
			return err
		}
		if err := checkPath(*path); err != nil {
			return err
		}
	}
	return nil
}

// newIdentity is unique for ever, and part of a file name (storeName).
func newIdentity() string { return strings.ToLower(rand.Text()[:16]) }

// takeOver gives a copy the files that are named by the identity of its original.
// What is in the folder itself is renamed. Behind a link to another disk are the files of the
// original: the copy gets links to the stored ones and to logs. Sandboxes, which
// name pilots of the original, go. It may be cut short and repeated.
func (i *identity) takeOver(state string) error {
	folder, err := beneath.Open(state)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	if err := folder.RemoveAll(filepath.Join(sandboxName, i.Former)); err != nil && !errors.Is(err, beneath.ErrOutside) {
		return err
	}
	for _, name := range []string{StorageName, logsName, InputsName, pilotsName, cacheName} {
		former := filepath.Join(name, i.Former)
		_, err := folder.Lstat(former)
		switch {
		case err == nil:
			err = os.Rename(filepath.Join(state, former), filepath.Join(state, name, i.ID))
		case errors.Is(err, beneath.ErrOutside) && name != cacheName:
			err = linkAll(filepath.Join(state, former), filepath.Join(state, name, i.ID))
		case errors.Is(err, beneath.ErrOutside):
			err = nil
		}
		if IgnoreMissing(err) != nil {
			return err
		}
	}
	i.Former = ""
	return i.write(state)
}

// linkAll gives the files of a folder names in another one, too, or copies them
// where that cannot be.
func linkAll(from, to string) error {
	source, err := beneath.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = source.Close() }()
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	target, err := beneath.Open(to)
	if err != nil {
		return err
	}
	defer func() { _ = target.Close() }()
	return source.Walk(func(name string, info fs.FileInfo) error {
		if !info.Mode().IsRegular() {
			return nil
		}
		above, element, err := source.Parent(name)
		if err != nil {
			return IgnoreMissing(err)
		}
		defer func() { _ = above.Close() }()
		below, _, err := target.Make(name, (*beneath.Folder).Sync)
		if err != nil {
			return err
		}
		defer func() { _ = below.Close() }()
		if _, err := target.Lstat(name); err == nil {
			return nil // from when this was cut short
		}
		_, err = LinkOrCopy(above.Path(element), below.Path(element))
		return err
	})
}

func (f *Layout) make() error {
	for _, own := range f.own() {
		path := *own
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is not a folder, though its name is that of one of this state: move it away", path)
		}
	}
	return nil
}
