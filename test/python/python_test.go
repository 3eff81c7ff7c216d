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

// The tests of the Python client pass with this program. Those of joblib and Dask are part of
// `make test-python`, which installs both.
func TestClient(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3")
	}
	source, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(python, "-m", "unittest", "discover", "-s", filepath.Join(source, "tests"))
	command.Env = append(os.Environ(), "FAIRWAY_BIN="+fairway, "PYTHONPATH="+filepath.Join(source, "src"),
		"PYTHONDONTWRITEBYTECODE=1")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
