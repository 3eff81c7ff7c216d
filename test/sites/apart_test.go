package sites_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fairway/test/files"
)

// apart makes a machine that shares nothing with this one, and returns the file of sites
// that describes it and the address of this machine there.
func apart(t *testing.T) (sites, address string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("it needs root")
	}
	for _, program := range []string{"ip", "tc", "nsenter", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	script, err := filepath.Abs("../../scripts/apart.sh")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	name := fmt.Sprintf("apart%d", os.Getpid())
	out, err := exec.Command(script, "up", name).Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(script, "down", name).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	described, err := exec.Command(script, "site", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(string(described), name+":", "far:", 1), strings.TrimSpace(string(out))
}

// onFar runs a workflow on a machine that shares nothing with this one, and compares the
// results with those of a run here.
func onFar(t *testing.T, w work) (folder string) {
	t.Helper()
	sites, address := apart(t)
	local := w.folder(t, "")
	run(t, local, append([]string{"run"}, w.arguments...)...)
	folder = w.folder(t, sites)
	run(t, folder, append([]string{"run", "--site", "far", "--listen", address + ":0"}, w.arguments...)...)
	mustEqual(t, w.results(t, folder), w.results(t, local))
	return folder
}

// Two machines without a common folder, of which one has neither the program nor the
// inputs, make the same bytes as one.
func TestApart(t *testing.T) {
	folder := onFar(t, texts(workflow))
	for _, pattern := range []string{"*.connect", "*.sh", "bin"} {
		if left := below(folder, ".fairway/pilots/*/"+pattern); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	if jobs := run(t, folder, "jobs", "--json"); !strings.Contains(jobs, `"state": "done"`) {
		t.Error(jobs)
	}
}

// A folder that is an input is in no file that could be sent as it is, and holds links,
// also such as lead out of it.
func TestApartFolderInput(t *testing.T) {
	folders := texts(`workflow: folders
inputs:
  reference: {files: 'ref/', as: 'reference/'}
  texts: {files: 'in/{n}.txt', as: 'in/{n}'}
steps:
  look:
    each: in/{n}
    reads: reference/
    writes: seen/{n}
    command: |
      cd reference
      find . | sort | while read -r f; do [ -d "$f" ] && echo "$f/" || echo "$f $(cksum < "$f")"; done > ../seen/$n
      ./program >> ../seen/$n
  make:
    reads: reference/
    writes: made/
    command: mkdir made; cp -r reference/sub made/; cp in.txt made/ 2>/dev/null || echo none > made/in.txt
`)
	lay := folders.lay
	folders.lay = func(t *testing.T, folder string) {
		lay(t, folder)
		files.Write(t, filepath.Join(folder, "ref/sub/deep/file"), strings.Repeat("deep\n", 100_000))
		files.Write(t, filepath.Join(folder, "ref/program"), "#!/bin/sh\necho it runs\n")
		files.Write(t, filepath.Join(folder, "outside"), "outside\n")
		for _, err := range []error{
			os.Chmod(filepath.Join(folder, "ref/program"), 0o755), os.Mkdir(filepath.Join(folder, "ref/empty"), 0o755),
			os.Symlink("sub/deep", filepath.Join(folder, "ref/inside")),
			os.Symlink("../outside", filepath.Join(folder, "ref/out")),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	onFar(t, folders)
}

func TestApartLambda(t *testing.T) { onFar(t, lambda(t)) }

func TestApartSiteTest(t *testing.T) {
	sites, address := apart(t)
	folder := folderWith(t, workflow, strings.Replace(sites, "    max_pilots: 2\n",
		"    max_pilots: 2\n    tools: [tr]\n", 1))
	said := run(t, folder, "site", "test", "far", "--listen", address+":0")
	for _, want := range []string{
		`"token": "TOKEN"`, "a pilot came after", "tools       tr\n", "server      reached at " + address,
		"the workflow's is not seen: files go through the server",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it doesn't say %q:\n%s", want, said)
		}
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 3 {
		t.Errorf("it left files: %v", entries)
	}
}
