package suites

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"fairway/test/program"
)

var fairway string

func TestMain(m *testing.M) { program.Main(m, &fairway) }

// all is set where whole suites are to be run, which take minutes.
const all = "FAIRWAY_TEST_SUITES"

// required is set where what the tests need is installed, so that none is skipped for its want.
const required = "FAIRWAY_TEST_TOOLS"

// A suite passes but for what its list leaves out: all of it, or a part that takes seconds.
func TestSuites(t *testing.T) {
	python, err := filepath.Abs("../../bin/suites/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(python); err != nil {
		if os.Getenv(required)+os.Getenv(all) != "" {
			t.Fatalf("`make suites` installs the suites: %v", err)
		}
		t.Skipf("`make test` installs the suites: %v", err)
	}
	t.Parallel()
	for _, suite := range []struct {
		name  string
		tests []string // words of pytest
		short string   // an expression of pytest
	}{
		{"cpython", []string{"test_cpython.py"},
			"test_no_timeout or submit_keyword or test_map_exception"},
		{"dask", []string{"test_dask.py"}, "nested or HighLevelGraph or cloudpickle"},
		{"joblib", []string{"-p", "joblib_backend", "--pyargs", "joblib.test.test_parallel"},
			"test_parallel_kwargs or test_lambda_expression or test_invalid_batch_size"},
	} {
		t.Run(suite.name, func(t *testing.T) {
			words := []string{"-m", "pytest", "-q", "-rs", "--tb=short", "-W", "ignore", "-p", "no:cacheprovider",
				"-p", "left_out", "--left-out", "left_out_" + suite.name + ".txt", "--timeout", "400"}
			if os.Getenv(all) != "" {
				t.Parallel() // they mostly wait
				words = append(words, "--durations", "10")
			} else {
				words = append(words, "-k", suite.short)
			}
			run(t, python, append(words, suite.tests...)...)
		})
	}
}

// share names the part K/N of Snakemake's tests that is run; none: all.
const share = "FAIRWAY_TEST_SHARE"

// Each of Snakemake's tests, or a part of them, ends with Fairway's executor as with the one that it has, but for
// what the list leaves out.
func TestSnakemake(t *testing.T) {
	if os.Getenv(all) == "" {
		t.Skip("`make test-suites` runs it")
	}
	t.Parallel()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"tests/tests.py", "-q", "-rs", "--tb=short", "-W", "ignore",
		"-p", "no:cacheprovider", "-p", "snakemake_compared", "--records", filepath.Join(root, "bin/snakemake-records"),
		"--timeout", "400", "-n", "2", "--durations", "10"}
	if part := os.Getenv(share); part != "" {
		words = append(words, "--share", part)
	}
	python := filepath.Join(root, "bin/suites/bin/python")
	by := func(more ...string) []string { // some tests leave files where they stand
		folder := filepath.Join(t.TempDir(), "snakemake")
		if err := os.CopyFS(folder, os.DirFS(filepath.Join(root, "bin/snakemake-tests"))); err != nil {
			t.Fatal(err)
		}
		begin := "import os, sys, pytest; os.chdir(sys.argv[1]); sys.exit(pytest.main(sys.argv[2:]))"
		return slices.Concat([]string{"-c", begin, folder}, words, more)
	}
	if out, err := command(t, python, by("--executor", "local")...).CombinedOutput(); err != nil {
		t.Logf("some fail anyway: %v\n%s", err, out[max(0, len(out)-4000):])
	}
	run(t, python, by("--executor", "fairway", "-p", "left_out", "--left-out",
		filepath.Join(root, "test/suites/left_out_snakemake.txt"))...)
}

func run(t *testing.T, python string, words ...string) {
	t.Helper()
	out, err := command(t, python, words...).CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
		return
	}
	t.Logf("%s", out)
}

// command is one of Python, which finds Fairway and what runs the suites.
func command(t *testing.T, python string, words ...string) *exec.Cmd {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	var path []string
	for _, folder := range []string{"python/src", "python/snakemake-executor-plugin-fairway/src", "test/suites"} {
		path = append(path, filepath.Join(root, folder))
	}
	command := exec.Command(python, words...)
	command.Env = append(os.Environ(), "FAIRWAY_BIN="+filepath.Dir(fairway), "PYTHONDONTWRITEBYTECODE=1",
		"PATH="+filepath.Dir(python)+":"+os.Getenv("PATH"), "PYTHONPATH="+strings.Join(path, ":"))
	return command
}
