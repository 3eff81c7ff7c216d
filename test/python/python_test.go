package python

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"fairway/test/program"
)

var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// The tests of the Python client pass with this program, with joblib and Dask where `make test` installs
// them. `make test-python` runs all, also those that take long.
func TestClient(t *testing.T) {
	python, err := filepath.Abs("../../bin/suites/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		if os.Getenv("FAIRWAY_TEST_TOOLS") != "" {
			t.Fatalf("`make suites` installs joblib and Dask: %v", err)
		}
		if python, err = exec.LookPath("python3"); err != nil {
			t.Skip("there is no python3")
		}
	}
	source, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(python, "-m", "unittest", "discover", "-s", filepath.Join(source, "tests"))
	command.Env = append(os.Environ(), "FAIRWAY_BIN="+fairway, "PYTHONPATH="+filepath.Join(source, "src"),
		"PYTHONDONTWRITEBYTECODE=1", "FAIRWAY_TEST_SHORT=1")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
