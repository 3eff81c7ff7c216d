// Package allocation starts pilots on the nodes of a job that one has already, of Slurm,
// Grid Engine or PBS: this process runs in it, and each node gets one pilot.
//
// In Slurm a pilot is a step (srun), in Grid Engine a task (qrsh -inherit): a process of
// this machine stands for it, so its end is known at once, and a later process on this
// machine finds it. The nodes of PBS are reached by ssh. All end with the allocation.
package allocation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"fairway/internal/batch"
	"fairway/internal/batch/ssh"
	"fairway/lib/sched"
)

// Config describes the pilots of an allocation.
type Config struct {
	// State is the identity of the state that the pilots work for.
	State string
	// Folder holds scripts and logs. All nodes must see it.
	Folder string
	// Script returns the shell commands that a launch consists of. Nothing secret may
	// be in them.
	Script func(launch string) (string, error)
	// Sched waits for processes. Default: sched.Default().
	Sched *sched.Scheduler
}

// System starts pilots on the nodes of an allocation.
type System interface {
	batch.System
	// Text is the script of a launch, and what is submitted for it.
	Text(launch string) (script, input string, err error)
}

// Open returns the nodes as a batch system.
func (a *Allocation) Open(cfg Config) (System, error) {
	cfg.Sched = cmp.Or(cfg.Sched, sched.Default())
	if a.Kind == PBS {
		return ssh.New(a.bySSH(cfg))
	}
	s := &steps{cfg: cfg, of: a}
	var err error
	s.Local, err = batch.NewLocal(batch.LocalConfig{
		State: cfg.State, LogDir: cfg.Folder, CommandOf: s.command, EndSignal: endSignal, Sched: cfg.Sched,
	})
	return s, err
}

func (a *Allocation) bySSH(cfg Config) ssh.Config {
	var hosts []string
	for _, node := range a.Nodes {
		hosts = append(hosts, node.Name)
	}
	return ssh.Config{Hosts: hosts, State: cfg.State, Folder: cfg.Folder, Script: cfg.Script, Sched: cfg.Sched}
}

// Example is what would be submitted for a launch named LAUNCH.
func (a *Allocation) Example(cfg Config) (string, error) {
	if a.Kind == PBS {
		return ssh.Example(a.bySSH(cfg))
	}
	_, input, err := (&steps{cfg: cfg, of: a}).Text("LAUNCH")
	return input, err
}

// steps are pilots for each of which a process of this machine stands.
type steps struct {
	*batch.Local
	cfg Config
	of  *Allocation
	mu  sync.Mutex // one submission at a time
}

var _ batch.Notifier = (*steps)(nil)

// endSignal is passed on by srun, which would kill the step at once on SIGTERM. A pilot
// takes it for the announcement of its end.
const endSignal = syscall.SIGUSR2

// nodeEnding is that of the file that names the node of a launch.
const nodeEnding = ".node"

func (s *steps) file(launch, ending string) string {
	return filepath.Join(s.cfg.Folder, launch+ending)
}

// Submit is part of batch.System.
func (s *steps) Submit(ctx context.Context, launch string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	node, err := s.free(ctx)
	if err != nil {
		return err
	}
	script, err := s.cfg.Script(launch)
	if err == nil {
		err = os.WriteFile(s.file(launch, ".sh"), []byte(prelude(node)+script), 0o700)
	}
	if err == nil {
		err = os.WriteFile(s.file(launch, nodeEnding), []byte(node.Name+"\n"), 0o600)
	}
	if err != nil {
		return err
	}
	return s.Local.Submit(ctx, launch)
}

// prelude keeps the marks of the process that stands for a pilot from the pilot itself,
// which may be on the same machine. Grid Engine tells a job its slots on all nodes, and a
// pilot has those of its own.
func prelude(node *Node) string {
	return fmt.Sprintf("unset %s %s\n[ -z \"$NSLOTS\" ] || export NSLOTS=%d\n", batch.LaunchVariable,
		batch.StateVariable, node.CPUs)
}

func (s *steps) free(ctx context.Context) (*Node, error) {
	running, err := s.Status(ctx)
	if err != nil {
		return nil, err
	}
	used := map[string]bool{}
	for launch := range running {
		name, err := os.ReadFile(s.file(launch, nodeEnding))
		if err != nil {
			return nil, fmt.Errorf("the node of the pilot %s is not known: %w", launch, err)
		}
		used[strings.TrimSpace(string(name))] = true
	}
	i := slices.IndexFunc(s.of.Nodes, func(n Node) bool { return !used[n.Name] })
	if i < 0 {
		return nil, errors.New("each node of the allocation has a pilot")
	}
	return &s.of.Nodes[i], nil
}

func (s *steps) command(launch string) ([]string, error) {
	name, err := os.ReadFile(s.file(launch, nodeEnding))
	if err != nil {
		return nil, err
	}
	for _, node := range s.of.Nodes {
		if node.Name == strings.TrimSpace(string(name)) {
			return s.of.on(node, launch, s.file(launch, ".sh")), nil
		}
	}
	return nil, fmt.Errorf("%s is no node of the allocation", name)
}

func (a *Allocation) on(node Node, launch, script string) []string {
	switch host, _ := os.Hostname(); {
	case a.Kind == Slurm:
		argv := []string{
			"srun", "--jobid=" + a.Job, "--nodes=1", "--ntasks=1", "--nodelist=" + node.Name,
			fmt.Sprintf("--cpus-per-task=%d", node.CPUs),
			"--job-name=" + launch, "--input=none", "--unbuffered", "--quiet",
		}
		if a.overlap {
			argv = append(argv, "--overlap")
		}
		return append(argv, "/bin/sh", script)
	case label(host) == label(node.Name): // the first task of a job needs no start
		return []string{"/bin/sh", script}
	default:
		return []string{"qrsh", "-inherit", "-nostdin", node.Name, "/bin/sh", script}
	}
}

func label(host string) string {
	first, _, _ := strings.Cut(host, ".")
	return first
}

// Text is part of System.
func (s *steps) Text(launch string) (script, input string, err error) {
	script, err = s.cfg.Script(launch)
	line := strings.Join(s.of.on(s.of.Nodes[0], launch, s.file(launch, ".sh")), " ")
	return script, "# on each node: " + line + "\n" + script, err
}
