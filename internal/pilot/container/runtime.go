package container

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// DefaultPath is where programs are found in images that do not say it, as other systems have it.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Call is a command in a container.
type Call struct {
	Root     string   // the unpacked files of the image, which belong to the caller
	Dir      string   // where the command runs
	Writable []string // absolute paths of the node that it sees, and writes to
	Readable []string // and that it may not write to
	Strict   bool     // it is called by a process that has given up its rights, also as root
	Argv     []string // found by the PATH of its environment, in the image
}

// runtimes are the programs that run containers, by the names of flow.Runtimes. Each shows the
// command the same, and gives it the environment that it has itself.
var runtimes = map[string]struct {
	program string
	argv    func(*Call) ([]string, error)
}{
	"apptainer":    {"apptainer", (*Call).apptainer}, // by its documentation; never tried
	"bubblewrap":   {"bwrap", (*Call).bubblewrap},
	"charliecloud": {"ch-run", (*Call).charliecloud},
	"podman":       {"podman", (*Call).podman}, // by its documentation; it needs crun
}

// Command is the program that runs the container, by name, and its arguments.
func (c *Call) Command(runtime string) (program string, argv []string, err error) {
	r, ok := runtimes[runtime]
	if !ok {
		return "", nil, fmt.Errorf("this version knows no runtime %q for containers", runtime)
	}
	argv, err = r.argv(c)
	return r.program, append([]string{r.program}, argv...), err
}

// ofNode are the folders that are the node's in each container.
var ofNode = []string{"dev", "proc", "sys", "tmp"}

// bubblewrap builds the root from what is in that of the image, so that places for what is shown
// besides need not be there. A folder of the image with the name of the first one of such a place
// is hidden.
func (c *Call) bubblewrap() ([]string, error) {
	entries, err := os.ReadDir(c.Root)
	if err != nil {
		return nil, err
	}
	hidden := slices.Clone(ofNode)
	for _, path := range slices.Concat(c.Writable, c.Readable) {
		first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		hidden = append(hidden, first)
	}
	var argv []string
	if c.Strict {
		argv = append(argv, "--unshare-user")
	}
	for _, e := range entries {
		from, name := filepath.Join(c.Root, e.Name()), "/"+e.Name()
		if slices.Contains(hidden, e.Name()) {
			continue
		}
		switch {
		case e.Type()&os.ModeSymlink != 0:
			target, err := os.Readlink(from)
			if err != nil {
				return nil, err
			}
			argv = append(argv, "--symlink", target, name)
		case e.IsDir() && isEmpty(from): // to mount it costs much more
			argv = append(argv, "--dir", name)
		default:
			argv = append(argv, "--ro-bind", from, name)
		}
	}
	argv = append(argv, "--dev-bind", "/dev", "/dev", "--bind", "/proc", "/proc", "--ro-bind-try", "/sys", "/sys",
		"--bind", "/tmp", "/tmp")
	for _, path := range c.Readable {
		argv = append(argv, "--ro-bind", path, path)
	}
	for _, path := range c.Writable {
		if !strings.HasPrefix(path, "/tmp/") { // which is there
			argv = append(argv, "--bind", path, path)
		}
	}
	return append(append(argv, "--chdir", c.Dir, "--"), c.Argv...), nil
}

func isEmpty(folder string) bool {
	entries, err := os.ReadDir(folder)
	return err == nil && len(entries) == 0
}

// charliecloud mounts on places in the root, which are made. /tmp is the node's anyhow.
func (c *Call) charliecloud() ([]string, error) {
	argv := []string{"--no-passwd", "--cd=" + c.Dir}
	for _, path := range slices.Concat(c.Readable, c.Writable) {
		if strings.HasPrefix(path, "/tmp/") {
			continue
		}
		if err := c.place(path); err != nil {
			return nil, err
		}
		argv = append(argv, "--bind="+path)
	}
	return append(append(argv, c.Root, "--"), c.Argv...), nil
}

func (c *Call) place(path string) error {
	root, err := os.OpenRoot(c.Root)
	if err != nil {
		return err
	}
	defer root.Close()
	name := strings.TrimPrefix(path, "/")
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return root.MkdirAll(name, 0o755)
	}
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := root.OpenFile(name, os.O_CREATE|os.O_RDONLY, 0o644)
	if err != nil {
		return err
	}
	return file.Close()
}

func (c *Call) podman() ([]string, error) {
	argv := []string{
		"run", "--rm", "--read-only", "--network=host", "--ipc=host", "--pid=host", "--cgroups=disabled",
		"--env-host", "--entrypoint=",
		"--volume=/tmp:/tmp", "--workdir=" + c.Dir,
	}
	for _, path := range c.Readable {
		argv = append(argv, "--volume="+path+":"+path+":ro")
	}
	for _, path := range c.Writable {
		argv = append(argv, "--volume="+path+":"+path)
	}
	return append(append(argv, "--rootfs", c.Root), c.Argv...), nil
}

func (c *Call) apptainer() ([]string, error) {
	argv := []string{"--quiet", "exec", "--no-home", "--pwd", c.Dir}
	for _, path := range c.Readable {
		argv = append(argv, "--bind", path+":"+path+":ro")
	}
	for _, path := range c.Writable {
		argv = append(argv, "--bind", path)
	}
	return append(append(argv, c.Root), c.Argv...), nil
}
