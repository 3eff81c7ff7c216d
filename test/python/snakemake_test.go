package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The plugin for Snakemake passes a part of its tests, with the Snakemake that `make test` installs. All
// are run by `make test-snakemake`.
func TestSnakemake(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(root, "bin/suites/bin/python")
	if _, err := os.Stat(python); err != nil {
		if os.Getenv("FAIRWAY_TEST_TOOLS") != "" {
			t.Fatalf("`make suites` installs Snakemake: %v", err)
		}
		t.Skipf("`make test` installs Snakemake: %v", err)
	}
	plugin := filepath.Join(root, "python/snakemake-executor-plugin-fairway")
	command := exec.Command(python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k",
		"may_say or failures or reasons or parameter or first_example or needs or tasks", "tests")
	command.Dir = plugin
	command.Env = append(os.Environ(), "FAIRWAY_BIN="+filepath.Dir(fairway), "PYTHONDONTWRITEBYTECODE=1",
		"PYTHONPATH="+filepath.Join(root, "python/src")+":"+filepath.Join(plugin, "src"))
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
