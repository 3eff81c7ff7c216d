package site

import (
	"fmt"
	"slices"
	"strings"

	"fairway/internal/batch"
	"fairway/internal/batch/allocation"
	"fairway/internal/batch/command"
	"fairway/internal/batch/ssh"
	"fairway/internal/bootstrap"
)

// Launcher is who has jobs of a site started, for one state.
type Launcher struct {
	State  string // the identity of the state that the pilots work for
	Folder string // for scripts
	// Server says that the jobs are servers and not pilots: they have names of another
	// form, one processor and [ServerMemory].
	Server bool
	// Environment are variables of this process that jobs get beside those that the site
	// names, and what the pilots themselves need; EnvironmentAll stands for all.
	Environment []string
	// Start is how the pilot of a launch is started. Where the site shares nothing with
	// the server, it holds secrets.
	Start func(launch string) (bootstrap.Start, error)
}

// CPUs are the processors of a pilot, as far as that is known before one has come; else 0.
func (s *Site) CPUs() int64 { return max(s.Request.CPUs, s.nodeCPUs) }

// LeavesCPUs reports whether a pilot gets as many processors as its node has, whatever that has: it asks for a whole
// node, or nothing is said to the batch system of processors.
func (s *Site) LeavesCPUs() bool {
	return s.Template == nil || !s.Template.Uses("cpus") ||
		s.Request.CPUs == 0 && s.Request.Memory == 0 && s.Template.Uses("whole_node")
}

// System is the batch system of a site.
type System interface {
	batch.System
	// Text is the script of a launch, and what is submitted for it.
	Text(launch string) (script, input string, err error)
}

// Open returns the batch system of a site.
func (s *Site) Open(p Launcher) (System, error) {
	switch s.System {
	case SSH:
		return ssh.New(s.hostsAt(p))
	case Allocation:
		return s.entered.Open(s.nodesAt(p))
	}
	return command.New(s.commandsAt(p))
}

// Example is what would be submitted, with names in capitals for what each state and
// launch has of its own. It makes nothing.
func (s *Site) Example(p Launcher) (string, error) {
	switch s.System {
	case SSH:
		return ssh.Example(s.hostsAt(p))
	case Allocation:
		return s.entered.Example(s.nodesAt(p))
	}
	return command.Example(s.commandsAt(p))
}

func (s *Site) hostsAt(p Launcher) ssh.Config {
	return ssh.Config{Hosts: s.Hosts, Options: s.Request.Options, State: p.State, Folder: p.Folder, Script: s.scriptAt(p)}
}

func (s *Site) nodesAt(p Launcher) allocation.Config {
	return allocation.Config{State: p.State, Folder: p.Folder, Script: s.scriptAt(p)}
}

func (s *Site) commandsAt(p Launcher) command.Config {
	c := command.Config{
		Template: s.Template, Request: s.Request, State: p.State, Folder: p.Folder, Script: s.scriptAt(p),
		Secret: s.Shares == SharesNothing,
	}
	c.Request.Environment = slices.Concat(p.Environment, s.Environment, s.scratchVariable())
	c.Request.WholeEnvironment = slices.Contains(c.Request.Environment, EnvironmentAll)
	if c.Request.Memory > 0 {
		c.Request.Memory += PilotMemory
	}
	if p.Server {
		c.Prefix, c.Request.CPUs, c.Request.Memory = serverPrefix, 1, ServerMemory
	}
	return c
}

// scratchVariable is that with which the folder for sandboxes begins. TMPDIR is that of a
// node, and not of this machine.
func (s *Site) scratchVariable() []string {
	found := scratchForm.FindStringSubmatch(s.Scratch)
	if found == nil {
		return nil
	}
	name := strings.Trim(found[1], "${}")
	if name == "" || name == "TMPDIR" {
		return nil
	}
	return []string{name}
}

// serverPrefix begins the names of jobs that are servers.
const serverPrefix = "fairway-server."

// ServerMemory is what a job that is a server asks for, in bytes: enough for a workflow of
// a million jobs.
const ServerMemory = 2 << 30

// TakesServers returns an error that says why a server cannot be a job of this site, nil
// where it can.
func (s *Site) TakesServers() error {
	switch {
	case s.Template == nil:
		return fmt.Errorf("the system %s of the site %s is no batch system", s.System, s.Name)
	case s.Shares == SharesNothing:
		return fmt.Errorf("the nodes of the site %s share nothing with this machine, and so not the state of the run", s.Name)
	}
	return nil
}

// carries reports whether scripts reach the nodes, and that nobody else reads
// them.
func (s *Site) carries() bool { return s.System == SSH || s.Template == nil || s.Template.Carries() }

func (s *Site) scriptAt(p Launcher) func(launch string) (string, error) {
	return func(launch string) (string, error) {
		start, err := p.Start(launch)
		return s.script(start), err
	}
}

// findModules has the shell know `module`, where its own start has not done that.
const findModules = `for init in /etc/profile.d/lmod.sh /etc/profile.d/modules.sh /usr/share/lmod/lmod/init/sh /usr/share/modules/init/sh; do
	command -v module >/dev/null 2>&1 && break
	[ -r "$init" ] && . "$init"
done
`

func (s *Site) script(start bootstrap.Start) string {
	var b strings.Builder
	b.WriteString(start.Before)
	if len(s.Modules) > 0 {
		b.WriteString(findModules)
	}
	for _, module := range s.Modules {
		fmt.Fprintf(&b, "module load %s || exit\n", bootstrap.Quote(module))
	}
	if s.Setup != "" {
		b.WriteString(strings.TrimRight(s.Setup, "\n") + "\n")
	}
	b.WriteString(start.After)
	return b.String()
}
