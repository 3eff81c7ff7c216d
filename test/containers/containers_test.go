package containers

import (
	"encoding/json"
	"errors"
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

// all is set where images of all kinds are to be tried, for which `make test-containers` installs the
// programs that make them. Without it the tests take what `make test` installs.
const all = "FAIRWAY_TEST_CONTAINERS"

// need skips where a program is not installed.
func need(t *testing.T, programs ...string) string {
	t.Helper()
	for _, program := range programs {
		if _, err := exec.LookPath(program); err != nil {
			if os.Getenv(all) != "" {
				t.Fatal(err)
			}
			t.Skipf("`make test` installs what is needed and runs this: %v", err)
		}
	}
	return t.TempDir()
}

func run(t *testing.T, folder string, words ...string) string {
	t.Helper()
	command := exec.Command(words[0], words[1:]...)
	command.Dir = folder
	out, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v\n%s", words, err, out)
	}
	return string(out)
}

// makeRoot makes the files of a small system.
func makeRoot(t *testing.T, folder string) {
	t.Helper()
	root := filepath.Join(folder, "root")
	if err := errors.Join(os.MkdirAll(filepath.Join(root, "bin"), 0o755), os.MkdirAll(filepath.Join(root, "opt"), 0o755),
		os.WriteFile(filepath.Join(root, "opt/marker"), []byte("inside\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	run(t, folder, "cp", "/bin/busybox", "root/bin/busybox")
	for _, name := range []string{"sh", "cat", "env", "sleep", "touch", "head", "tail", "wc", "kill", "true"} {
		if err := os.Symlink("busybox", filepath.Join(root, "bin", name)); err != nil {
			t.Fatal(err)
		}
	}
}

// makeImages makes an image of each kind of them, by the programs that people make them with, and
// returns their names.
func makeImages(t *testing.T, folder string) []string {
	t.Helper()
	makeRoot(t, folder)
	run(t, folder, "tar", "-C", "root", "-czf", "plain.tar.gz", ".")
	run(t, folder, "mksquashfs", "root", "image.squashfs", "-quiet", "-no-progress")
	images := []string{"plain.tar.gz", "image.squashfs", "root/"}
	if os.Getenv(all) == "" {
		return images
	}
	run(t, folder, "siftool", "new", "image.sif")
	run(t, folder, "siftool", "add", "--datatype", "4", "--parttype", "2", "--partfs", "1", "--partarch", "2", "image.sif",
		"image.squashfs")
	podman := []string{"podman", "--root", folder + "/podman", "--runroot", folder + "/podrun", "--storage-driver=vfs"}
	t.Cleanup(func() { _ = exec.Command(podman[0], append(podman[1:], "system", "reset", "--force")...).Run() })
	run(t, folder, append(podman, "import", "--change", "ENV GREETING=hello", "plain.tar.gz", "small")...)
	run(t, folder, append(podman, "save", "--quiet", "--format", "oci-archive", "-o", "oci.tar", "small")...)
	run(t, folder, append(podman, "save", "--quiet", "--format", "docker-archive", "-o", "docker.tar", "small")...)
	return append(images, "oci.tar", "docker.tar", "image.sif")
}

// Commands see the image, whatever kind it is of, and their files.
func TestImages(t *testing.T) {
	folder := need(t, "busybox", "mksquashfs", "bwrap", "ch-run")
	images := makeImages(t, folder)
	text := "workflow: w\ninputs: {in: {files: in.txt}}\nsteps:\n"
	var names []string
	for _, runtime := range []string{"bubblewrap", "charliecloud"} {
		for _, image := range images {
			for _, sandbox := range []string{"open", "strict"} {
				name := runtime + "." + strings.Trim(image, "/") + "." + sandbox
				names = append(names, name)
				text += "  " + name + ":\n    reads: in.txt\n    writes: " + name + ".txt" +
					"\n    sandbox: " + sandbox +
					"\n    container: {image: " + image + ", runtime: " + runtime +
					"}\n    command: |\n      cat /opt/marker \"$in\" > \"$out\"\n" +
					"      echo \"${GREETING-none} $PATH\" >> \"$out\"\n" +
					"      ! touch /opt/mine 2>/dev/null\n"
			}
		}
	}
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(folder, "in.txt"), []byte("mine\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	run(t, folder, fairway, "run", "--pilots", "2")
	for _, name := range names {
		got, err := os.ReadFile(filepath.Join(folder, "results", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		greeting := "none"
		if strings.Contains(name, "oci") || strings.Contains(name, "docker") {
			greeting = "hello"
		}
		want := "inside\nmine\n" + greeting + " /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
		if string(got) != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Commands in a container end as without one, and at the same limits.
func TestEnds(t *testing.T) {
	folder := need(t, "busybox", "bwrap", "ch-run")
	makeRoot(t, folder)
	run(t, folder, "tar", "-C", "root", "-cf", "plain.tar", ".")
	if err := os.WriteFile(filepath.Join(folder, "secret.txt"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	type ending struct{ name, keys, command, state, says string }
	commands := []ending{
		{"code", "", "exit 7", "failed", "exit code 7"},
		{"killed", "", "kill -KILL $$", "failed", "exit code 137|SIGKILL"},
		{"time", "needs: {time: 1s}", "sleep 1000", "failed", "took longer than its limit"},
		{"memory", "needs: {memory: 50MB}", "head -c 200000000 /dev/zero | tail -c 200000000 | wc -c", "failed",
			"more than its 50"},
		{"missing", "", "nowhere", "failed", "nowhere"},
		{"secret", "", `cat ` + folder + `/secret.txt > "$out"`, "done", "secret.txt, which the step does not declare"},
	}
	text := "workflow: w\nsteps:\n"
	for _, runtime := range []string{"bubblewrap", "charliecloud"} {
		for _, c := range commands {
			text += "  " + runtime + "." + c.name + ":\n    writes: " + runtime + "." + c.name +
				"\n    retry: {attempts: 1}\n    container: {image: plain.tar, runtime: " + runtime + "}\n    " + c.keys +
				"\n    command: |\n      " + c.command + "\n      true\n"
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ran := exec.Command(fairway, "run", "--keep-going", "--pilots", "2", "--watch-inputs", "all")
	ran.Dir = folder
	out, _ := ran.CombinedOutput() // some jobs fail
	var jobs struct {
		Jobs []struct {
			Step, State, Reason string
			Notes               []string
		}
	}
	if err := json.Unmarshal([]byte(run(t, folder, fairway, "jobs", "--json")), &jobs); err != nil {
		t.Fatal(err)
	}
	for _, j := range jobs.Jobs {
		runtime, name, _ := strings.Cut(j.Step, ".")
		at := slices.IndexFunc(commands, func(c ending) bool { return c.name == name })
		said := strings.Join(append(j.Notes, j.Reason), "; ")
		if j.State != commands[at].state || !slices.ContainsFunc(strings.Split(commands[at].says, "|"),
			func(part string) bool { return strings.Contains(said, part) }) {
			t.Errorf("%s in %s is %s: %q\n%s", name, runtime, j.State, said, out)
		}
	}
	if len(jobs.Jobs) != 2*len(commands) {
		t.Errorf("%d jobs ran:\n%s", len(jobs.Jobs), out)
	}
}

// A runtime that no node has is told before any job runs.
func TestMissingRuntime(t *testing.T) {
	folder := need(t)
	text := "workflow: w\nsteps:\n  s: {writes: s, container: {image: a.sif, runtime: apptainer}, command: 'true'}\n"
	if err := errors.Join(os.WriteFile(filepath.Join(folder, "workflow.yaml"), []byte(text), 0o644),
		os.WriteFile(filepath.Join(folder, "a.sif"), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	ran := exec.Command(fairway, "run")
	ran.Dir = folder
	out, err := ran.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "apptainer") {
		t.Errorf("%v\n%s", err, out)
	}
}

// An environment is made once, from what is published, and again when another one is required.
func TestEnvironment(t *testing.T) {
	folder := need(t, "uv")
	text := `workflow: w
steps:
  a:
    times: 3
    writes: a/{number}.txt
    environment: requirements.txt
    command: python3 -c 'import six; print(six.__version__)' > "$out"
  b:
    writes: b.txt
    environment: requirements.txt
    sandbox: strict
    command: cowsay -t hello > "$out"
`
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("workflow.yaml", text)
	write("requirements.txt", "six==1.16.0\ncowsay==6.1\n")
	run(t, folder, fairway, "run", "--pilots", "2")
	for name, want := range map[string]string{"a/1.txt": "1.16.0", "b.txt": "hello"} {
		got, err := os.ReadFile(filepath.Join(folder, "results", name))
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if again := run(t, folder, fairway, "run"); !strings.Contains(again, "nothing to do") {
		t.Errorf("nothing had changed: %s", again)
	}
	write("requirements.txt", "six==1.17.0\ncowsay==6.1\n")
	run(t, folder, fairway, "run", "--pilots", "2")
	if got, err := os.ReadFile(filepath.Join(folder, "results/a/3.txt")); err != nil || string(got) != "1.17.0\n" {
		t.Errorf("after a change: %q, %v", got, err)
	}
}
