package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"fairway/lib/subprocess"
)

const (
	// pythonVariable names a Python that has TaskVine.
	pythonVariable = "FAIRWAY_PEERS_PYTHON"
	// vineVariable names the program vine_worker of TaskVine.
	vineVariable = "FAIRWAY_PEERS_VINE"
)

//go:embed peers/taskvine.py
var vineProgram string

// taskvine is TaskVine as it is installed.
type taskvine struct{ python, worker string }

// findTaskvine finds a Python that has TaskVine, and its worker. Hosts see the worker's program as
// they see this machine: not below the folders that netns.Apart hides.
func findTaskvine() (*taskvine, error) {
	t := &taskvine{python: cmp.Or(os.Getenv(pythonVariable), "python3")}
	worker, err := exec.LookPath(cmp.Or(os.Getenv(vineVariable), "vine_worker"))
	if err == nil {
		t.worker, err = filepath.Abs(worker)
	}
	if err != nil {
		return nil, fmt.Errorf("the worker of TaskVine: %w (set %s)", err, vineVariable)
	}
	if out, err := exec.Command(t.python, "-c", "import ndcctools.taskvine").CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s cannot use the module of TaskVine (set %s): %s", t.python, pythonVariable, out)
	}
	return t, nil
}

// vineTasks are the commands of the tasks that wait for all workers, and of those that need the
// file. A worker is a session of processes: it has children that send and receive.
var vineTasks = [2]string{
	`touch "SEEN/gate-$(hostname)"
until set -- SEEN/gate-*; [ $# = HOSTS ]; do sleep 0.05; done
CPU > "SEEN/before-$(hostname)"
date +%s.%N > "SEEN/began-$(hostname)"`,
	`date +%s.%N > "SEEN/has-$(hostname)"
until set -- SEEN/has-*; [ $# = HOSTS ]; do sleep 0.05; done
CPU > "SEEN/after-$(hostname)"
[ "$(stat -L -c %s big.dat)" = SIZE ]`,
}

const vineCPU = `cat /proc/[0-9]*/stat 2>/dev/null | sed "s/(.*)/-/" | ` +
	`awk -v session="$(ps -o sid= $PPID)" '$6 == session { t += $14+$15+$16+$17 } END { print t }'`

// serve has the server of the cluster offer the files of a folder by HTTP, and returns the URL of
// one of them.
func (c *cluster) serve(folder, name string) (url string, err error) {
	err = c.server.Inside(func() error {
		listener, err := net.Listen("tcp", c.server.Address+":0")
		if err != nil {
			return err
		}
		server := &http.Server{Handler: http.FileServer(http.Dir(folder))}
		go func() { _ = server.Serve(listener) }()
		c.bench.Cleanup(func() { _ = server.Close() })
		url = "http://" + listener.Addr().String() + "/" + name
		return nil
	})
	return url, err
}

// run has a manager on the server bring the file to a worker on each host, in a way of its program.
// The time and the processor time are those of [cluster.run].
func (t *taskvine) run(ctx context.Context, c *cluster, way string, mb int) (s spread, err error) {
	seen, folder := c.bench.TempDir(), c.bench.TempDir()
	if err := os.Chmod(seen, 0o777); err != nil {
		return s, err
	}
	big, program := filepath.Join(folder, "big.dat"), filepath.Join(folder, "taskvine.py")
	if err := errors.Join(writeBig(big, mb), os.WriteFile(program, []byte(vineProgram), 0o600)); err != nil {
		return s, err
	}
	url, err := c.serve(folder, "big.dat")
	if err != nil {
		return s, err
	}
	words := strings.NewReplacer("HOSTS", strconv.Itoa(len(c.hosts)), "SEEN", seen, "CPU", vineCPU,
		"SIZE", strconv.Itoa(mb*1_000_000))
	cores := strconv.Itoa(runtime.NumCPU())
	cmd := c.server.Command(ctx, t.python, program, way, url, strconv.Itoa(len(c.hosts)), cores,
		words.Replace(vineTasks[0]), words.Replace(vineTasks[1]))
	cmd.Dir = folder // where it writes what it does
	manager, err := subprocess.Start(cmd)
	if err != nil {
		return s, err
	}
	defer manager.Kill()
	port, err := manager.Hear()
	if err != nil {
		return s, err
	}
	for _, h := range c.hosts {
		worker := h.Command(ctx, t.worker, "--cores="+cores, "--workspace="+filepath.Join(h.Folder, "vine"),
			c.server.Address, port)
		worker.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := worker.Start(); err != nil {
			return s, err
		}
		defer func() {
			h.Kill()
			_ = worker.Wait()
		}()
	}
	if _, err := manager.Hear(); err != nil { // that all tasks have ended
		return s, fmt.Errorf("taskvine: %w", err)
	}
	return c.told(seen)
}
