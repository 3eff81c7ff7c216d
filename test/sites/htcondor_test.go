package sites_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/batch/batchtest"
)

// All tests of one HTCondor. It takes no jobs of root, and runs jobs as nobody, who sees nothing of
// the folders of an ordinary user.
func TestHTCondor(t *testing.T) {
	batchtest.HTCondor(t)
	for _, test := range []one{
		{"sums", func(t *testing.T) { onHTCondor(t, texts(workflow)) }},
		{"lambda", func(t *testing.T) { onHTCondor(t, lambda(t)) }},
		{"trace", func(t *testing.T) { onHTCondor(t, trace(t)) }},
		{"site test", htcondorSiteTest},
	} {
		t.Run(test.name, test.run)
	}
}

const htcondorSite = `sites:
  pool:
    system: htcondor
    max_pilots: 2
    min_pilots: 2
    cpus: 2
    memory: 1GB
    time: 1h
    poll: 1s
`

// own has a test run fairway as an ordinary user, and returns a folder that nobody else may enter.
func own(t *testing.T) (folder string) {
	t.Helper()
	before := as
	t.Cleanup(func() { as = before })
	as = []string{"setpriv", "--reuid=" + batchtest.HTCondorUser, "--regid=" + batchtest.HTCondorUser, "--clear-groups"}
	if err := os.Chmod(filepath.Dir(fairway), 0o755); err != nil {
		t.Fatal(err)
	}
	folder = t.TempDir()
	t.Setenv("HOME", folder)
	return folder
}

// give makes a folder and all in it an ordinary user's, whom the folders above let in.
func give(t *testing.T, folder string) {
	t.Helper()
	uid, gid := batchtest.Account(t, batchtest.HTCondorUser)
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Lchown(path, int(uid), int(gid)))
	})
	above := filepath.Dir(folder)
	for ; err == nil && strings.HasPrefix(above, os.TempDir()+"/"); above = filepath.Dir(above) {
		err = os.Chmod(above, 0o755)
	}
	if err = errors.Join(err, os.Chmod(folder, 0o700)); err != nil {
		t.Fatal(err)
	}
}

// onHTCondor runs a workflow there and on this machine, and compares the results.
func onHTCondor(t *testing.T, w work) {
	t.Helper()
	arguments := append([]string{"run"}, w.arguments...)
	local := w.folder(t, "")
	run(t, local, arguments...)
	folder := w.in(t, own(t), htcondorSite)
	give(t, folder)
	run(t, folder, append(arguments, "--site", "pool", "--listen", "127.0.0.1:0")...)
	mustEqual(t, w.results(t, folder), w.results(t, local))
	if left := below(folder, ".fairway/pilots/*/*.sh"); len(left) > 0 {
		t.Error("scripts with secrets are left:", left)
	}
}

func htcondorSiteTest(t *testing.T) {
	folder := texts(workflow).in(t, own(t), strings.Replace(htcondorSite, "    poll: 1s\n", "    tools: [tr]\n", 1))
	give(t, folder)
	said := run(t, folder, "site", "test", "pool", "--listen", "127.0.0.1:0")
	for _, want := range []string{
		`executable = scripts/$(script)`, "a pilot came after", "processors  2", "tools       tr\n", "server      reached at 127.0.0.1:",
		"the workflow's is not seen: files go through the server",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("it doesn't say %q:\n%s", want, said)
		}
	}
}
