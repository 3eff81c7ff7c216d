package folders

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"fairway/test/files"
	"fairway/test/program"
)

var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// kinds are workflows of every kind: with names known before and chosen by
// content, merged, rewritten, split, and kept in caches. input is what they read.
var kinds = map[string]string{
	"each": `
steps:
  copy: {each: "raw/{n}.txt", writes: "copied/{n}.txt", command: 'cat "$in" >"$out"'}
  all: {merge: "copied/{n}.txt", writes: all.txt, command: 'cat $in >"$out"'}
`,
	"chosen": `
steps:
  parts: {each: "raw/{n}.txt", writes: "parts/{n}/{part}.txt", command: 'mkdir -p parts/$n; for p in a b; do cat "$in" >parts/$n/$p.txt; done'}
  all: {merge: "parts/{n}/{part}.txt", writes: all.txt, command: 'cat $in >"$out"'}
`,
	"rewritten": `
inputs:
  table: {files: table.txt}
steps:
  note: {each: "raw/{n}.txt", rewrites: table.txt, command: 'cat "$in" >"$out"'}
`,
	"split": `
steps:
  lines: {each: "raw/{n}.txt", split: {records: 1, of: lines}, writes: "lines/{n}.{chunk}.txt", command: 'sed -n "$first,${last}p" "$in" >"$out"'}
`,
	"cached": `
steps:
  copy: {each: "raw/{n}.txt", writes: "copied/{n}.txt", storage: cache, command: 'cat "$in" >"$out"'}
  all: {merge: "copied/{n}.txt", writes: deep/er/all.txt, command: 'cat $in >"$out"'}
`,
}

// newProject makes a folder with a workflow and its inputs.
func newProject(t *testing.T, folder, kind string) {
	t.Helper()
	text := kinds[kind]
	raw := "  raw: {files: \"in/{n}.txt\", as: \"raw/{n}.txt\"}\n"
	if strings.Contains(text, "inputs:\n") {
		text = strings.Replace(text, "inputs:\n", "inputs:\n"+raw, 1)
	} else {
		text = "inputs:\n" + raw + text
	}
	files.Write(t, filepath.Join(folder, "workflow.yaml"), "workflow: "+kind+"\n"+text)
	files.Write(t, filepath.Join(folder, "table.txt"), "table\n")
	files.Write(t, filepath.Join(folder, "in/1.txt"), "one\ntwo\n")
	files.Write(t, filepath.Join(folder, "in/2.txt"), "three\n")
}

// do runs fairway in a folder, and returns what it said.
func do(t *testing.T, folder string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, fairway, arguments...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("fairway %q in %s: %v\n%s", arguments, folder, err, out)
	}
	return string(out)
}

// foreign is a file of a person's, with what it must hold and be for ever.
type foreign struct {
	text  string
	inode uint64
	mode  uint32
}

// plant puts foreign files wherever Fairway writes and removes in a folder that
// was run, some with names like its own, and returns them by path.
func plant(t *testing.T, folder, outside string) map[string]foreign {
	t.Helper()
	state := filepath.Join(folder, ".fairway")
	paths := []string{
		"notes.txt", "results/notes.txt", "results/copied/notes.txt", "results/all.txt.v1.a1", "results/.fairway-publishing",
		".fairway/notes.txt", ".fairway/storage/all.txt.v1.a1", ".fairway/cache/notes.txt", ".fairway/sandbox/notes.txt",
		".fairway/logs/1.out",
		".fairway/inputs/notes.txt", ".fairway/pilots/local-1.log",
	}
	for i := range paths {
		paths[i] = filepath.Join(folder, paths[i])
	}
	owned, err := filepath.Glob(filepath.Join(state, "storage", "*"))
	if err != nil || len(owned) == 0 {
		t.Fatalf("%s has no storage: %v", state, err)
	}
	for _, own := range owned {
		for _, link := range []string{"linked", "deep", "parts"} {
			_ = os.Symlink(outside, filepath.Join(own, link)) // unless the run has made one of them
		}
	}
	_ = os.Symlink(outside, filepath.Join(folder, "results/linked"))
	paths = append(paths, filepath.Join(outside, "all.txt.v1.a1"), filepath.Join(outside, "notes.txt"))
	planted := map[string]foreign{}
	for _, path := range paths {
		files.Write(t, path, "mine: "+path)
		planted[path] = look(t, path)
	}
	return planted
}

func look(t *testing.T, path string) foreign {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
		return foreign{}
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Error(err)
	}
	return foreign{string(text), st.Ino, st.Mode}
}

// unharmed makes sure that foreign files are what they were; the folder may have
// moved since.
func unharmed(t *testing.T, when string, planted map[string]foreign, from, to string) {
	t.Helper()
	for _, path := range slices.Sorted(maps.Keys(planted)) {
		now := path
		if rest, inside := strings.CutPrefix(path, from+"/"); inside {
			now = filepath.Join(to, rest)
		}
		if got := look(t, now); got != planted[path] {
			t.Errorf("%s: %s is %+v, was %+v", when, now, got, planted[path])
		}
	}
}

// again runs a project that is done, then with a changed input, and wants what a
// first run elsewhere gives.
func again(t *testing.T, folder, kind string) {
	t.Helper()
	if said := do(t, folder, "run", "--dry-run"); !strings.Contains(said, "0 jobs would run") {
		t.Errorf("%s: in %s jobs would run again:\n%s", kind, folder, said)
	}
	do(t, folder, "run")
	changed := filepath.Join(folder, "in/2.txt")
	text, err := os.ReadFile(changed)
	if err != nil {
		t.Fatal(err)
	}
	files.Write(t, changed, string(text)+"more\n")
	do(t, folder, "run")
	fresh := t.TempDir()
	newProject(t, fresh, kind)
	files.Write(t, filepath.Join(fresh, "in/2.txt"), string(text)+"more\n")
	do(t, fresh, "run")
	got := files.Below(t, filepath.Join(folder, "results"))
	for name, want := range files.Below(t, filepath.Join(fresh, "results")) {
		if got[name] != want {
			t.Errorf("%s: in %s the result %s is %q, want %q", kind, folder, name, got[name], want)
		}
	}
}

func TestNothingForeignIsTouched(t *testing.T) {
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		t.Run(kind, func(t *testing.T) {
			parent, outside := t.TempDir(), t.TempDir()
			at := func(name string) string { return filepath.Join(parent, name) }
			newProject(t, at("root"), kind)
			do(t, at("root"), "run")
			planted := plant(t, at("root"), outside)
			check := func(when, to string) { t.Helper(); unharmed(t, when, planted, at("root"), to) }

			if err := os.Symlink("root", at("link")); err != nil {
				t.Fatal(err)
			}
			again(t, at("link"), kind)
			check("run through a link", at("root"))
			again(t, at("root"), kind)
			check("run by its own path", at("root"))
			if err := os.Mkdir(at("bound"), 0o755); err != nil {
				t.Fatal(err)
			}
			if unix.Mount(at("root"), at("bound"), "", unix.MS_BIND, "") == nil {
				again(t, at("bound"), kind)
				check("run through a mount", at("root"))
				if err := unix.Unmount(at("bound"), 0); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Rename(at("root"), at("moved")); err != nil {
				t.Fatal(err)
			}
			again(t, at("moved"), kind)
			check("run where it was moved to", at("moved"))
			if out, err := exec.Command("cp", "-a", at("moved"), at("copied")).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			original := files.Below(t, at("moved"))
			again(t, at("copied"), kind)
			check("a copy was run", at("moved"))
			if now := files.Below(t, at("moved")); !maps.Equal(now, original) {
				t.Error("a run of the copy changed the original")
			}
			do(t, at("copied"), "clean", "--results")
			check("a copy was cleaned", at("moved"))
			for path, text := range files.Below(t, at("copied")) {
				if strings.HasPrefix(path, "results/") && !strings.HasPrefix(text, "mine: ") {
					t.Errorf("the result %s of the copy was not removed", path)
				}
			}
			again(t, at("moved"), kind)
			do(t, at("moved"), "clean", "--results")
			check("cleaned", at("moved"))
		})
	}
}

// Two workflows with one storage, one cache, one folder of logs and one of
// results leave each other's files and people's alone.
func TestWorkflowsThatShareFolders(t *testing.T) {
	shared := t.TempDir()
	roots := []string{t.TempDir(), t.TempDir()}
	for i, kind := range []string{"each", "chosen"} {
		newProject(t, roots[i], kind)
		for _, name := range []string{"storage", "cache", "sandbox", "logs", "inputs", "pilots"} {
			files.Write(t, filepath.Join(shared, name, "notes.txt"), "mine")
			if err := os.MkdirAll(filepath.Join(roots[i], ".fairway"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(filepath.Join(shared, name), filepath.Join(roots[i], ".fairway", name)); err != nil {
				t.Fatal(err)
			}
		}
		do(t, roots[i], "run")
	}
	first := files.Below(t, filepath.Join(roots[0], "results"))
	files.Write(t, filepath.Join(roots[1], "in/2.txt"), "changed\n")
	do(t, roots[1], "run")
	do(t, roots[1], "clean", "--results")
	if said := do(t, roots[0], "run", "--dry-run"); !strings.Contains(said, "0 jobs would run") {
		t.Errorf("jobs would run again:\n%s", said)
	}
	do(t, roots[0], "run")
	if now := files.Below(t, filepath.Join(roots[0], "results")); !maps.Equal(now, first) {
		t.Errorf("the results are %q, were %q", now, first)
	}
	do(t, roots[0], "clean", "--results")
	left := files.Below(t, shared)
	for name, text := range left {
		if text != "mine" {
			t.Errorf("left is %s", name)
		}
	}
	if len(left) != 6 {
		t.Errorf("of six foreign files there are %d", len(left))
	}
}

// A host may know the file system of a folder by another number than the next one, and than itself after it
// was mounted again. It stays the same folder; a copy there is another one.
func TestHostsKnowAFolderByOtherNumbers(t *testing.T) {
	if _, err := exec.LookPath("bindfs"); err != nil || os.Geteuid() != 0 {
		t.Skip("it mounts with bindfs, as root")
	}
	real, hosts := t.TempDir(), t.TempDir()
	mount := func(name string) string {
		t.Helper()
		at := filepath.Join(hosts, name)
		if err := os.MkdirAll(at, 0o755); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("bindfs", real, at).CombinedOutput(); err != nil {
			t.Skipf("nothing can be mounted: %v: %s", err, out)
		}
		t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
		return at
	}
	device := func(path string) uint64 {
		t.Helper()
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			t.Fatal(err)
		}
		return st.Dev
	}
	identity := func(folder string) string {
		t.Helper()
		_, after, _ := strings.Cut(files.Read(t, filepath.Join(folder, ".fairway/identity")), `"id":"`)
		id, _, _ := strings.Cut(after, `"`)
		return id
	}
	first, second := mount("first"), mount("second")
	if a, b, c := device(first), device(second), device(real); a == b || b == c || a == c {
		t.Fatalf("the numbers do not differ: %d, %d, %d", a, b, c)
	}
	newProject(t, filepath.Join(first, "work"), "each")
	do(t, filepath.Join(first, "work"), "run")
	id := identity(filepath.Join(first, "work"))
	same := func(when, folder string) {
		t.Helper()
		if said := do(t, folder, "jobs"); !strings.Contains(said, "done") {
			t.Errorf("%s: it is known no more:\n%s", when, said)
		}
		again(t, folder, "each")
		if now := identity(folder); now != id {
			t.Fatalf("%s: it is another folder", when)
		}
	}
	same("on another host", filepath.Join(second, "work"))
	if err := unix.Unmount(first, 0); err != nil {
		t.Fatal(err)
	}
	third := mount("third")
	mount("first")
	same("after it was mounted again", filepath.Join(first, "work"))
	same("on the file server", filepath.Join(real, "work"))
	same("on a third host", filepath.Join(third, "work"))
	for _, copied := range [][2]string{{first, third}, {third, third}, {real, second}} {
		duplicate := filepath.Join(copied[1], "copy")
		if out, err := exec.Command("cp", "-a", filepath.Join(copied[0], "work"), duplicate).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		again(t, duplicate, "each")
		if identity(duplicate) == id {
			t.Error("a copy is taken for the original")
		}
		if err := os.RemoveAll(duplicate); err != nil {
			t.Fatal(err)
		}
	}
	same("after it was copied", filepath.Join(second, "work"))
	do(t, filepath.Join(second, "work"), "clean")
	if _, err := os.Lstat(filepath.Join(real, "work/.fairway")); err == nil {
		t.Error("the folder of the state is left, since its lock was open when it was removed")
	}
}
