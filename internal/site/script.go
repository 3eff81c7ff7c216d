package site

import (
	"fmt"
	"strings"

	"fairway/internal/batch"
	"fairway/internal/batch/command"
	"fairway/internal/batch/ssh"
)

// Place is where the pilots of a site find what they need. Nodes must see it.
type Place struct {
	State   string // the identity of the state that they work for
	Folder  string // for scripts and logs
	Program string // the program that is the pilot
	// Arguments are those of the program for a launch. Everybody may read them in a
	// list of processes: secrets are in files that they name.
	Arguments func(launch string) ([]string, error)
	// Log is the file for what the pilot of a launch says.
	Log func(launch string) string
}

// AsksWholeNode says that a pilot gets a whole node, whatever that has.
func (s *Site) AsksWholeNode() bool {
	return s.Template == nil || s.Request.CPUs == 0 && s.Request.Memory == 0 && s.Template.Uses("whole_node")
}

// System is the batch system of a site.
type System interface {
	batch.System
	// Text is the script of a launch, and what is submitted for it.
	Text(launch string) (script, input string, err error)
}

// Open returns the batch system of a site.
func (s *Site) Open(p Place) (System, error) {
	if s.System == SSH {
		return ssh.New(s.hostsAt(p))
	}
	return command.New(s.commandsAt(p))
}

func (s *Site) hostsAt(p Place) ssh.Config {
	return ssh.Config{Hosts: s.Hosts, Options: s.Request.Options, State: p.State, Folder: p.Folder, Script: s.scriptAt(p)}
}

func (s *Site) commandsAt(p Place) command.Config {
	return command.Config{Template: s.Template, Request: s.Request, State: p.State, Folder: p.Folder, Script: s.scriptAt(p)}
}

// scriptAt makes the script of a launch.
func (s *Site) scriptAt(p Place) func(launch string) (string, error) {
	return func(launch string) (string, error) {
		arguments, err := p.Arguments(launch)
		return s.script(append([]string{p.Program}, arguments...), p.Log(launch)), err
	}
}

// findModules has the shell know `module`, where its own start has not done that.
const findModules = `for init in /etc/profile.d/lmod.sh /etc/profile.d/modules.sh /usr/share/lmod/lmod/init/sh /usr/share/modules/init/sh; do
	command -v module >/dev/null 2>&1 && break
	[ -r "$init" ] && . "$init"
done
`

// script is what a pilot consists of for the shell.
func (s *Site) script(command []string, log string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "exec >>%s 2>&1 </dev/null\n", quote(log))
	if len(s.Modules) > 0 {
		b.WriteString(findModules)
	}
	for _, module := range s.Modules {
		fmt.Fprintf(&b, "module load %s || exit\n", quote(module))
	}
	if s.Setup != "" {
		b.WriteString(strings.TrimRight(s.Setup, "\n") + "\n")
	}
	b.WriteString("exec")
	for _, word := range command {
		b.WriteString(" " + quote(word))
	}
	b.WriteString("\n")
	return b.String()
}

// quote makes one word of the shell of a text.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// Example is what would be submitted, with names in capitals for what each state and
// launch has of its own. It makes nothing.
func (s *Site) Example(p Place) (string, error) {
	if s.System == SSH {
		return ssh.Example(s.hostsAt(p))
	}
	return command.Example(s.commandsAt(p))
}
