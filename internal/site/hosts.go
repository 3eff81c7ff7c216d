package site

import (
	"context"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/batch/allocation"
	"fairway/internal/batch/ssh"
	"fairway/internal/quantity"
	"fairway/internal/yamlfile"
)

// Enter finds the job in which this process runs, whose nodes the site is: there is one
// pilot on each. Of other systems it does nothing. It comes before Open and Example. The
// error may be allocation.ErrNone.
func (s *Site) Enter(ctx context.Context) error {
	if s.System != Allocation || s.entered != nil {
		return nil
	}
	a, err := allocation.Find(ctx)
	if err != nil {
		return err
	}
	s.entered = a
	if nodes := len(a.Nodes); s.MaxPilots == 0 || s.MaxPilots > nodes {
		s.MaxPilots = nodes
	}
	s.nodeCPUs = a.CPUs()
	return nil
}

// TakenCPUs are the processors that each pilot in an allocation takes, 0 where its node tells
// it how many it has.
func (s *Site) TakenCPUs() int64 {
	if s.entered == nil || s.entered.Kind != allocation.PBS {
		return 0
	}
	return s.nodeCPUs
}

// Left is what is left of the time of the job in which this process runs, and false where
// that has no end that is known.
func (s *Site) Left() (time.Duration, bool) {
	if s.entered == nil {
		return 0, false
	}
	return s.entered.Left()
}

// checkHosts finds how many pilots a site may have, which with ssh are one on each host.
func (r *reader) checkHosts(s *Site, nodes map[string]*yaml.Node, f yamlfile.Field, what string) {
	switch hosts := len(s.Hosts); {
	case s.System != SSH && nodes["hosts"] != nil:
		r.Fail(nodes["hosts"], "remove it, or write `system: ssh`", "%s: the system %s has no hosts", what, s.System)
	case s.System == SSH && nodes["hosts"] == nil:
		r.Fail(f.Key, "add `hosts: [node1, node2]`, as you name them to ssh", "%s has no hosts", what)
	case s.System == SSH && s.MaxPilots > hosts && hosts > 0:
		r.Fail(nodes["max_pilots"], "name more hosts, or leave it out", "%s: max_pilots is %d, and there is one pilot on "+
			"each of its %s", what, s.MaxPilots, quantity.Count(int64(hosts), "host"))
	case s.MaxPilots == 0 && s.System != Allocation:
		s.MaxPilots = max(hosts, DefaultMaxPilots)
	}
}

func hosts(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
	s.Hosts = r.Texts(n, what)
	for i, host := range s.Hosts {
		if !ssh.IsHost(host) {
			r.Fail(yamlfile.Follow(n),
				"write a name that `ssh NAME` takes; user, port and jump hosts may stand in ~/.ssh/config",
				"%s: %q is no name of a host", what, host)
		}
		if slices.Contains(s.Hosts[:i], host) {
			r.Fail(yamlfile.Follow(n), "name it once", "%s names %s twice", what, host)
		}
	}
}

// checkNodes refuses what means nothing to hosts, or to an allocation that is there.
func (r *reader) checkNodes(s *Site, nodes map[string]*yaml.Node, what string) {
	keys := []string{"partition", "queue", "account", "parallel_environment", "image"}
	if s.System == Allocation {
		keys = append(keys, "options", "cpus", "memory", "time")
	}
	for _, key := range keys {
		if nodes[key] != nil {
			r.Fail(nodes[key], "remove it", "%s: the system %s has no %s", what, s.System, key)
		}
	}
	if s.System == Allocation && s.Shares == SharesNothing {
		r.Fail(nodes["shares"], "put the folder of the workflow where all nodes see it",
			"%s: the nodes of an allocation share the folder of the workflow", what)
	}
	for _, option := range s.Request.Options {
		if !ssh.IsOption(option) {
			r.Fail(yamlfile.Follow(nodes["options"]), "write a keyword of ssh_config with its value: ProxyJump=gateway",
				"%s: options: %q is none of ssh", what, option)
		}
	}
}
