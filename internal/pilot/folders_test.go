package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/archive"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// archived lists what the stored folder of a result holds.
func archived(t *testing.T, o *wire.WrittenFile) string {
	t.Helper()
	f, err := os.Open(strings.TrimPrefix(o.GetPfn(), "file:"))
	check(t, err)
	defer f.Close()
	info, err := f.Stat()
	check(t, err)
	a, err := archive.Open(f, info.Size())
	check(t, err)
	var b strings.Builder
	for _, e := range a.Entries() {
		fmt.Fprintf(&b, "%c %s %d%s\n", e.Kind, e.Name, e.Size, e.Target)
	}
	if info.Size() != o.GetSize() {
		t.Errorf("it has %d bytes, and %d were told", info.Size(), o.GetSize())
	}
	return b.String()
}

// Whatever a folder holds that is an output, it is kept or refused, and nothing
// outside of the sandbox is touched.
func TestFoldersWithEveryKindOfFile(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache"}
	q.start(cfg)
	const succeeded, missing = wire.Outcome_OUTCOME_SUCCEEDED, wire.Outcome_OUTCOME_MISSING_OUTPUT
	for name, c := range map[string]struct {
		command string
		root    bool
		outcome wire.Outcome
		want    string // in the message, or what is kept
	}{
		"nothing":           {command: ":"},
		"regular":           {command: "printf x > out/f", want: "f f 1\n"},
		"no bytes":          {command: ": > out/f", want: "f f 0\n"},
		"sparse":            {command: "truncate -s 100M out/f", want: "f f 104857600\n"},
		"hard link inside":  {command: "printf x > a; ln a out/f", want: "f f 1\n"},
		"hard link outside": {command: "ln $mine/file out/f", want: "f f 4\n"},
		"moved input":       {command: "mv in out/f", want: "f f 4\n"},
		"linked input":      {command: "ln in out/f", want: "f f 4\n"},
		"of another owner":  {command: "printf x > out/f; chown -R 65534 out", root: true, want: "f f 1\n"},
		"not readable":      {command: "printf x > out/f; chmod 0 out/f; chmod 0 out", root: true, want: "f f 1\n"},
		"folders":           {command: "mkdir -p out/d/e; : > out/d/f", want: "d d 0\nd d/e 0\nf d/f 0\n"},
		"link inside":       {command: "printf x > out/f; ln -s f out/l", want: "f f 1\nl l 0f\n"},
		"named pipe":        {command: "mkfifo out/f", outcome: missing, want: "f in it is a named pipe"},
		"device":            {command: "mknod out/f c 1 3", root: true, outcome: missing, want: "f in it is a device"},
		"link outside":      {command: "ln -s $mine/file out/f", outcome: missing, want: "no relative path"},
		"link to sandbox":   {command: "printf x > a; ln -s ../a out/f", outcome: missing, want: "may lead out of the folder"},
		"mounted folder":    {command: "mkdir out/d; mount --bind $mine out/d", root: true, outcome: missing, want: "d in it is on a file system that was mounted there"},
		"mounted file":      {command: ": > out/f; mount --bind $mine/file out/f", root: true, outcome: missing, want: "f in it is on a file system that was mounted there"},
		"mounted itself":    {command: "mount --bind $mine out", root: true, outcome: missing, want: "mounted"},
		"is a link":         {command: "rmdir out; ln -s $mine out", outcome: missing, want: "is a symbolic link; a name that ends in / stands for a folder"},
		"is a file":         {command: "rmdir out; : > out", outcome: missing, want: "is a regular file; a name that ends in / stands for a folder"},
		"is not there":      {command: "rmdir out", outcome: missing, want: "is not there"},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root {
				needsRoot(t)
			}
			mine := newPossession(t)
			r := q.run("p1", shell("mkdir out; mine="+mine.path+"; "+c.command, writes("out/"),
				tagged(t, reads("in", 0, 4, mine.path+"/deep/file"), mine.path+"/deep/file")))
			expect(t, r, c.outcome, "")
			if c.outcome != succeeded {
				expect(t, r, c.outcome, c.want)
				return
			}
			if got := archived(t, r.GetOutputs()[0]); got != c.want {
				t.Errorf("kept is\n%swant\n%s", got, c.want)
			}
		})
	}
	expect(t, q.run("p1", shell("mkdir out", writes("out"))), missing,
		"is a folder; end the name in / to keep the folder with all that is in it")
	r := q.run("p1", shell("for p in a b; do mkdir parts/$p; echo $p > parts/$p/f; done; : > parts/c", writes("parts/*/")))
	expect(t, r, succeeded, "")
	var names []string
	for _, o := range r.GetOutputs() {
		names = append(names, o.GetLfn()+" "+archived(t, o))
	}
	if got := strings.Join(names, ""); got != "parts/a/ f f 2\nparts/b/ f f 2\n" {
		t.Errorf("chosen folders: %q", got)
	}
	if got := r.GetNotes(); len(got) != 1 ||
		!strings.Contains(got[0], "parts/c matches the output parts/*/ and is left out, since it is no folder") {
		t.Errorf("notes: %q", got)
	}
}

// Attempts that read a folder share its files, and each may change its own folder.
func TestFoldersAreUnpackedOnceAndShared(t *testing.T) {
	for _, mode := range []CacheMode{CacheNone, CachePilot} {
		t.Run(string(mode), func(t *testing.T) {
			q := newTaskQueue(t)
			cfg := q.config("p1")
			cfg.Cache = CacheConfig{Mode: mode, Dir: q.folder + "/cache", MaxSpace: 1 << 20}
			q.start(cfg)
			r := q.run("p1", shell("mkdir -p x/d; printf text > x/d/f; ln -s d/f x/l; mkdir x/e", writes("x/")))
			expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
			first := shell("stat -c %i x/d/f; test -d x/e; : > x/new; rm -f x/d/f x/l", made(r))
			second := shell("stat -c %i x/d/f; test -d x/e; test -L x/l; test ! -e x/new", made(r))
			q.assign("p1", first, second)
			expect(t, q.result(first.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
			expect(t, q.result(second.GetAttempt()), wire.Outcome_OUTCOME_SUCCEEDED, "")
			if a, b := contents(t, q.log(first, "out")), contents(t, q.log(second, "out")); a == "" || a != b {
				t.Errorf("inodes of the file: %s, then %s", a, b)
			}
			expect(t, q.run("p1", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "")
			if left, err := filepath.Glob(cfg.SandboxDir + "/p1/unpacked/*"); err != nil || len(left) > 0 {
				t.Errorf("nobody reads them any more: %v, %v", left, err)
			}
		})
	}
}

func TestWriterOfAnInputFolderDamagesItOnce(t *testing.T) {
	q := newTaskQueue(t)
	cfg := q.config("p1")
	cfg.Cache = CacheConfig{Mode: CachePilot, Dir: q.folder + "/cache", MaxSpace: 1 << 20}
	q.start(cfg)
	x := q.run("p1", shell("mkdir x; echo stored > x/f", writes("x/")))
	private := func(a *wire.Assignment) { a.Private = true }
	const inPlace = "chmod u+w x/f; printf STORED 1<>x/f"
	r := q.run("p1", shell(inPlace, made(x)))
	expect(t, r, wire.Outcome_OUTCOME_INPUT_LOST, "this command, or another one that reads it, wrote to its input x/ in "+
		"place")
	if len(r.GetLost()) > 0 {
		t.Errorf("the stored folder is as it was: %v", r.GetLost())
	}
	expect(t, q.run("p1", shell("grep stored x/f", made(x))), wire.Outcome_OUTCOME_SUCCEEDED, "")
	expect(t, q.run("p1", shell(inPlace, made(x), private)), wire.Outcome_OUTCOME_INPUT_CHANGED,
		"wrote to its input x/ in place; have it write to a copy")
	expect(t, q.run("p1", shell("grep stored x/f; touch x/new", made(x), private)), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

func TestDamagedFolderIsNotRead(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"gone":    os.Remove,
		"cut":     func(path string) error { return os.Truncate(path, 30) },
		"flipped": func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("x", 168)), 0o644) },
	} {
		t.Run(name, func(t *testing.T) {
			q := newTaskQueue(t)
			cfg := q.config("p1")
			cfg.Cache = CacheConfig{Mode: CacheNone}
			q.start(cfg)
			r := q.run("p1", shell("mkdir x; echo stored > x/f", writes("x/")))
			expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
			path := strings.TrimPrefix(r.GetOutputs()[0].GetPfn(), "file:")
			check(t, os.Chmod(path, 0o644))
			check(t, damage(path))
			r = q.run("p1", shell("true", made(r)))
			expect(t, r, wire.Outcome_OUTCOME_INPUT_LOST, "")
			if len(r.GetLost()) != 1 || r.GetLost()[0].GetFile().GetLfn() != "x/" {
				t.Errorf("lost: %v", r.GetLost())
			}
		})
	}
}

// A folder from outside is linked as it is, or refused where it is another one.
func TestFolderFromOutside(t *testing.T) {
	q := newTaskQueue(t)
	q.start(q.config("p1"))
	folder, other := t.TempDir(), writeFile(t, "elsewhere")
	check(t, os.MkdirAll(folder+"/d", 0o755))
	check(t, os.WriteFile(folder+"/d/f", []byte("text"), 0o644))
	check(t, os.Symlink(other, folder+"/big"))
	input := func(a *wire.Assignment) {
		l, err := archive.List(folder)
		check(t, err)
		reads("x/", 0, l.Size(), folder)(a)
		a.Inputs[0].File.Tag = storage.FixedTag(l.State())
	}
	r := q.run("p1", shell(`test "$(cat x/d/f x/big)" = textelsewhere; test -f x/big; : > x/d/new`, input))
	expect(t, r, wire.Outcome_OUTCOME_SUCCEEDED, "")
	if names, err := os.ReadDir(folder + "/d"); err != nil || len(names) != 1 {
		t.Errorf("in the person's folder: %v, %v", names, err)
	}
	before := shell("true", input)
	check(t, os.Chtimes(other, time.Time{}, time.Unix(7, 0)))
	expect(t, q.run("p1", before), wire.Outcome_OUTCOME_INPUT_CHANGED, "has changed since this run took it up")
	expect(t, q.run("p1", shell("echo more >> x/d/f", input)), wire.Outcome_OUTCOME_INPUT_CHANGED,
		"wrote to its input x/ in place")
	again := shell("true", input)
	check(t, os.Symlink("/dev/null", folder+"/null"))
	expect(t, q.run("p1", again), wire.Outcome_OUTCOME_STAGE_IN_FAILED,
		"null in it is a link to /dev/null, which is a device")
}
