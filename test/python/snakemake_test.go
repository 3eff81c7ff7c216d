package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The plugin for Snakemake passes its tests where Snakemake is installed: bin/snakemake, which
// `make test-snakemake` makes.
func TestSnakemake(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(root, "bin/snakemake/bin/python")
	if _, err := os.Stat(python); err != nil {
		t.Skip("Snakemake is not installed: make test-snakemake")
	}
	plugin := filepath.Join(root, "python/snakemake-executor-plugin-fairway")
	command := exec.Command(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "may_say or failures", "tests")
	command.Dir = plugin
	command.Env = append(os.Environ(), "FAIRWAY_BIN="+filepath.Dir(fairway), "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+filepath.Join(root, "python/src")+":"+filepath.Join(plugin, "src"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
