package site

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"fairway/internal/batch/ssh"
	"fairway/internal/quantity"
	"fairway/internal/yamlfile"
)

// checkHosts finds how many pilots a site may have, which with ssh are one on each host.
func (r *reader) checkHosts(s *Site, nodes map[string]*yaml.Node, f yamlfile.Field, what string) {
	switch hosts := len(s.Hosts); {
	case s.System != SSH && nodes["hosts"] != nil:
		r.Fail(nodes["hosts"], "remove it, or write `system: ssh`", "%s: the system %s has no hosts", what, s.System)
	case s.System == SSH && nodes["hosts"] == nil:
		r.Fail(f.Key, "add `hosts: [node1, node2]`, as you name them to ssh", "%s has no hosts", what)
	case s.System == SSH && s.MaxPilots > hosts && hosts > 0:
		r.Fail(nodes["max_pilots"], "name more hosts, or leave it out", "%s: max_pilots is %d, and there is one pilot on each of its %s", what, s.MaxPilots, quantity.Count(int64(hosts), "host"))
	case s.MaxPilots == 0:
		s.MaxPilots = max(hosts, DefaultMaxPilots)
	}
}

func (r *reader) hosts(n *yaml.Node, s *Site, what string) {
	s.Hosts = r.Texts(n, what)
	for i, host := range s.Hosts {
		if !ssh.IsHost(host) {
			r.Fail(yamlfile.Follow(n), "write a name that `ssh NAME` takes; user, port and jump hosts may stand in ~/.ssh/config", "%s: %q is no name of a host", what, host)
		}
		if slices.Contains(s.Hosts[:i], host) {
			r.Fail(yamlfile.Follow(n), "name it once", "%s names %s twice", what, host)
		}
	}
}

// checkSSH refuses what means nothing to a host.
func (r *reader) checkSSH(s *Site, nodes map[string]*yaml.Node, what string) {
	for _, key := range []string{"partition", "queue", "account", "parallel_environment", "image"} {
		if nodes[key] != nil {
			r.Fail(nodes[key], "remove it", "%s: the system %s has no %s", what, s.System, key)
		}
	}
	for _, option := range s.Request.Options {
		if !ssh.IsOption(option) {
			r.Fail(yamlfile.Follow(nodes["options"]), "write a keyword of ssh_config with its value: ProxyJump=gateway", "%s: options: %q is none of ssh", what, option)
		}
	}
}
