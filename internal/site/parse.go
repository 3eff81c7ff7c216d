package site

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/batch/command"
	"fairway/internal/eviction"
	"fairway/internal/quantity"
	"fairway/internal/yamlfile"
)

// Keys are those that a site may have, but command, which has keys of its own.
var Keys = []yamlfile.Key[Site]{
	{Name: "system", Help: "batch system: " + strings.Join(systems(), ", "), Read: system},
	{Name: "hosts", Help: "hosts of the system ssh, as you name them to ssh: node1, me@node2", List: true, Read: hosts},
	{Name: "max_pilots", Help: "most pilots at a time (default 1; with ssh and allocation one for each host)", Read: count(1, func(s *Site) *int { return &s.MaxPilots })},
	{Name: "min_pilots", Help: "pilots that are kept, with or without work (default 0)", Read: count(0, func(s *Site) *int { return &s.MinPilots })},
	{Name: "min_idle_pilots", Help: "pilots without work that are kept ready (default 0)", Read: count(0, func(s *Site) *int { return &s.MinIdlePilots })},
	{Name: "partition", Help: "partition of Slurm", Read: name(func(s *Site) *string { return &s.Request.Partition })},
	{Name: "queue", Help: "queue of the other batch systems", Read: name(func(s *Site) *string { return &s.Request.Queue })},
	{Name: "account", Help: "account or project that pays", Read: name(func(s *Site) *string { return &s.Request.Account })},
	{Name: "parallel_environment", Help: "parallel environment of Grid Engine that gives the slots of one node", Read: name(func(s *Site) *string { return &s.Request.ParallelEnvironment })},
	{Name: "image", Help: "container image of Kubernetes", Read: name(func(s *Site) *string { return &s.Request.Image })},
	{Name: "time", Help: "time limit of a pilot, such as 12h", Read: yamlfile.Into(quantity.Duration, func(s *Site) *time.Duration { return &s.Request.Time })},
	{Name: "cpus", Help: "processors of a pilot", Read: yamlfile.Whole(1, func(s *Site) *int64 { return &s.Request.CPUs })},
	{Name: "memory", Help: "memory for the jobs of a pilot, such as 64GB; 256 MiB more are asked for, for the pilot itself", Read: yamlfile.Into(quantity.Room, func(s *Site) *int64 { return &s.Request.Memory })},
	{Name: "has", Help: "what else a pilot has that steps ask for under needs:, such as gpu=2, also as {gpu: 2}", List: true, Read: has},
	{Name: "options", Help: "further options for the batch system, as in its scripts", List: true, Read: texts(func(s *Site) *[]string { return &s.Request.Options })},
	{Name: "poll", Help: "least time between two questions to the batch system (default 5s; with htcondor 30s)", Read: yamlfile.Into(quantity.Duration, func(s *Site) *time.Duration { return &s.Poll })},
	{Name: "idle_timeout", Help: "time after which pilots without work leave, but for the minimum (default 5m)", Read: yamlfile.Into(quantity.Duration, func(s *Site) *time.Duration { return &s.IdleTimeout })},
	{Name: "price", Help: "how long a job may wait rather than start a pilot here, for each hour of a processor, such as 10m; for a choice among sites (default 0s)", Read: yamlfile.Into(quantity.Duration, func(s *Site) *time.Duration { return &s.Price })},
	{Name: "queue_wait", Help: "how long pilots wait in the batch system, until some have shown it; for a choice among sites (default 0s)", Read: yamlfile.Into(quantity.Duration, func(s *Site) *time.Duration { return &s.QueueWait })},
	{Name: "near", Help: "how the names of stored files begin that its nodes read as their own, such as root://se.here/; for a choice among sites", Read: text(func(s *Site) *string { return &s.Near })},
	{Name: "lease", Help: "how long pilots and server wait for each other when they cannot reach each other, from 1s to 24h (default 2h)", Read: lease},
	{Name: "sandbox", Help: "strict: each job sees only its own files; open: what the step says (default)", Read: word("is neither strict nor open", func(s *Site, word string) { s.Strict = word == "strict" }, "strict", "open")},
	{Name: "check", Help: "shell command that must succeed on a node before it takes jobs", Read: text(func(s *Site) *string { return &s.Check })},
	{Name: "tools", Help: "programs that must be on a node", List: true, Read: texts(func(s *Site) *[]string { return &s.Tools })},
	{Name: "environment", Help: "variables of this shell that jobs get, by name, or all of them: all (default: only those that name the user, programs and storage)", List: true, Read: environment},
	{Name: "modules", Help: "environment modules to load", List: true, Read: texts(func(s *Site) *[]string { return &s.Modules })},
	{Name: "setup", Help: "shell commands before the pilot starts", Read: text(func(s *Site) *string { return &s.Setup })},
	{Name: "scratch", Help: "local folder of a node for sandboxes and caches (default $TMPDIR, else /tmp)", Read: scratch},
	{Name: "cache", Help: "who shares cached files: global (all pilots of the site; they listen at a port), host (the pilots of a node), pilot (nobody), none (there is no cache) (default: what --cache says)", Read: word("does not say who shares a cache", func(s *Site, word string) { s.Cache = word }, caches...)},
	{Name: "share_cache", Help: "whose pilots share files on a node: user (those of one user; default), or group (those of several users of one group, which the modes of files let read each other's)", Read: word("does not say whose pilots share a cache", func(s *Site, word string) { s.GroupCache = word == CacheOfGroup }, CacheOfUser, CacheOfGroup)},
	{Name: "cache_with", Help: "other sites with which pilots exchange cached files, if those name this one too", List: true, Read: cacheWith},
	{Name: "cache_space", Help: "size of a pilot's cache, such as 50GB", Read: yamlfile.Into(quantity.Room, func(s *Site) *int64 { return &s.CacheSpace })},
	{Name: "catalog", Help: "its file catalogue, a storage.xml or storage.json beside this file: where its nodes find inputs, by `/` and the name that the workflow gives them", Read: text(func(s *Site) *string { return &s.Catalog })},
	{Name: "catalog_protocol", Help: "whose rules of the catalogue are taken (default direct)", Read: text(func(s *Site) *string { return &s.CatalogRules })},
	{Name: "catalog_outputs", Help: "the folder, by its name in the catalogue, in which its nodes store what jobs write, and results have their names, such as /store/user/me (default: what --storage says)", Read: text(func(s *Site) *string { return &s.OutputFolder })},
	{Name: "placement", Help: "which of equal jobs a pilot gets: " + strings.Join(Placements, ", ") + " (default: what --placement says; a workflow goes before)", Read: word("is no rule of placement", func(s *Site, word string) { s.Placement = word }, Placements...)},
	{Name: "cache_policy", Help: "which file a full cache gives up first: " + strings.Join(policies(), ", ") + " (default: what --cache-policy says)", Read: word("is no policy of a cache", func(s *Site, word string) { s.CachePolicy = eviction.Policy(word) }, policies()...)},
	{Name: "min_threshold", Help: "part of that which each pilot keeps free for its jobs, such as 5GB (default 0)", Read: yamlfile.Into(quantity.Room, func(s *Site) *int64 { return &s.MinThreshold })},
	{Name: "shares", Help: "what nodes share with the server: folder (of the workflow, under the same path) or nothing", Read: word("is neither folder nor nothing", func(s *Site, word string) { s.Shares = word }, SharesFolder, SharesNothing)},
}

const habitTime = "write `time: DURATION`, such as 12h"

// siteHabits are keys of other systems, and what to write instead.
var siteHabits = map[string]string{
	"walltime": habitTime, "timelimit": habitTime, "time_limit": habitTime, "runtime": habitTime,
	"mem": "write `memory: 64GB`", "mem_mb": "write `memory: 64GB`", "cores": "write `cpus: NUMBER`",
	"threads":       "write `cpus: NUMBER`",
	"cpus_per_task": "write `cpus: NUMBER`", "slots": "write `cpus: NUMBER`", "ncpus": "write `cpus: NUMBER`",
	"pe":   "write `parallel_environment: NAME`",
	"host": "write `hosts: [node1]`", "hostname": "write `hosts: [node1]`", "user": "write `hosts: [USER@HOST]`",
	"port":    "write `hosts: [ssh://HOST:PORT]`",
	"nodes":   "leave it out: a pilot has one node, and max_pilots says how many there are",
	"jobs":    "`max_pilots` says how many pilots there are at most",
	"project": "write `account: NAME`", "module": "write `modules: [NAME]`", "env": "write `environment: [NAME]`",
	"export": "write `environment: [NAME]`", "envmodules": "write `modules: [NAME]`",
	"executor": "write `system: NAME`, such as slurm", "scheduler": "write `system: NAME`, such as slurm",
	"type":  "write `system: NAME`, such as slurm",
	"extra": "write `options: [--exclusive]`", "clusterOptions": "write `options: [--exclusive]`",
	"template":  "write `system: htcondor`, or the template under `command:`",
	"resources": "write `has: {gpu: 2}`", "cost": "write `price: 10m`",
	"tmpdir": "write `scratch: FOLDER`", "cache_dir": "write `scratch: FOLDER`",
	"cache_size": "write `cache_space: 50GB`", "max_space": "write `cache_space: 50GB`",
}

type reader struct{ yamlfile.Reader }

// Parse reads a file of sites. file is its name for messages. The error is
// [yamlfile.Problems].
func Parse(file string, data []byte) ([]*Site, error) {
	r := &reader{yamlfile.Reader{
		File: file, Kind: "file of sites", Limit: MaxFile, Oversize: "divide it among the folders of workflows",
		Begin: "start with `sites:`, or use `fairway site add`",
	}}
	var sites []*Site
	if root := r.Root(data); root != nil {
		keys := r.Known(root, "the file", []string{"sites"}, nil)
		switch n := keys["sites"]; {
		case n != nil && yamlfile.Follow(n).Tag != "!!null":
			fields := r.Mapping(n, "sites")
			for _, f := range fields {
				sites = append(sites, r.site(f))
			}
			r.checkExchange(fields, sites)
		case n == nil && len(r.Problems) == 0:
			r.Fail(root, "add `sites:`", "the file describes no sites")
		}
	}
	if len(r.Problems) > 0 {
		return nil, r.Problems.Sorted()
	}
	return sites, nil
}

var nameForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)

// isSiteName reports whether a site may have the name; "local" is this machine.
func isSiteName(name string) bool {
	return len(name) <= 30 && nameForm.MatchString(name) && name != "local"
}

func (r *reader) site(f yamlfile.Field) *Site {
	s := &Site{
		Name: f.Key.Value, File: r.File, Line: f.Key.Line,
		IdleTimeout: DefaultIdleTimeout, CatalogRules: DefaultRules, Scratch: DefaultScratch, Shares: SharesFolder,
	}
	if !isSiteName(s.Name) {
		r.Fail(f.Key, "begin with a letter, and use up to 30 letters, digits, '_' and '-'; local is this machine",
			"%q is no name for a site", s.Name)
	}
	what := fmt.Sprintf("site %q", s.Name)
	keys := append([]yamlfile.Key[Site]{{Name: "command"}}, Keys...)
	nodes := yamlfile.Take(&r.Reader, f.Value, s, what, keys, siteHabits)
	r.template(s, nodes["command"], f, what)
	if nodes["shares"] == nil && s.Template != nil && s.Template.Uploads {
		s.Shares = SharesNothing // what needs no upload sees the folder
	}
	r.checkUse(s, nodes, what)
	r.checkHosts(s, nodes, f, what)
	r.checkCache(s, nodes, what)
	if n := nodes["shares"]; n != nil && s.Shares == SharesNothing && !s.carries() {
		r.Fail(n, "write `shares: folder`, or a template under `command:` that says `private: true` and either submits the "+
			"script on standard input or says `uploads: true`",
			"%s: scripts of pilots that share nothing hold a secret, and %s is not known to keep scripts from other users",
			what, s.System)
	}
	if s.MinPilots > s.MaxPilots && s.MaxPilots > 0 {
		r.Fail(nodes["min_pilots"], "raise max_pilots", "%s: min_pilots is %d, more than max_pilots, %d", what,
			s.MinPilots, s.MaxPilots)
	}
	return s
}

func (r *reader) template(s *Site, n *yaml.Node, f yamlfile.Field, what string) {
	switch {
	case s.System == "" && !r.failed():
		r.Fail(f.Key, "add `system: slurm`, or another of "+strings.Join(systems(), ", "), "%s has no system", what)
	case s.System == Command && n == nil:
		r.Fail(f.Key, "add `command:`; see `fairway site template slurm` for an example",
			"%s has the system command, and no template", what)
	case s.System == Command:
		s.Template = command.Read(&r.Reader, n, what+": command")
	case n != nil:
		r.Fail(n, "write `system: command`, or remove it", "%s has a template, and the system %s", what, s.System)
	case slices.Contains(command.Names(), s.System):
		s.Template, _ = command.Ready(s.System)
	}
}

func (r *reader) failed() bool { return len(r.Problems) > 0 }

func systems() []string { return append(command.Names(), SSH, Allocation, Command) }

// checkUse refuses what the batch system would not be asked for.
func (r *reader) checkUse(s *Site, nodes map[string]*yaml.Node, what string) {
	if s.System == SSH || s.System == Allocation {
		r.checkNodes(s, nodes, what)
	}
	if s.Template == nil {
		return
	}
	for key, uses := range map[string][]string{
		"partition": {"partition"}, "queue": {"queue"}, "account": {"account"},
		"parallel_environment": {"parallel_environment"},
		"image":                {"image"}, "time": {"seconds", "minutes", "hms"}, "cpus": {"cpus"},
		"memory": {"memory_bytes", "memory_mb", "memory_mb_per_cpu"}, "options": {"option"},
	} {
		if nodes[key] != nil && !slices.ContainsFunc(uses, s.Template.Uses) {
			instead := "remove it"
			switch {
			case key == "queue" && s.Template.Uses("partition"):
				instead = "write `partition:`"
			case key == "partition" && s.Template.Uses("queue"):
				instead = "write `queue:`"
			}
			r.Fail(nodes[key], instead, "%s: the system %s has no %s", what, s.System, key)
		}
	}
	if n := nodes["environment"]; n != nil && !s.Template.HandsOver() {
		r.Fail(n, "write `setup: export NAME=VALUE`", "%s: the system %s hands no environment over", what, s.System)
	}
	if s.Request.CPUs > 1 && s.Template.Uses("parallel_environment") && s.Request.ParallelEnvironment == "" {
		r.Fail(nodes["cpus"], "add `parallel_environment: NAME`; `qconf -spl` lists them",
			"%s: several processors need a parallel environment", what)
	}
}

func system(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
	value, ok := r.Text(n, what)
	if ok && !slices.Contains(systems(), value) {
		instead := yamlfile.DidYouMean(value, systems())
		for word, is := range map[string]string{
			"sge":     "gridengine",
			"uge":     "gridengine",
			"condor":  "htcondor",
			"torque":  "pbs",
			"openpbs": "pbs",
			"k8s":     "kubernetes",
			"sbatch":  "slurm",
			"local":   "",
		} {
			switch {
			case value == word && is == "":
				instead = "leave it out: `fairway run` without --site runs on this machine"
			case value == word:
				instead = "write `system: " + is + "`"
			}
		}
		r.Fail(n, instead, "%s: %q is no batch system known here", what, value)
	}
	s.System = value
}

func lease(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
	yamlfile.Into(quantity.Duration, func(s *Site) *time.Duration { return &s.Lease })(r, n, s, what)
	if len(r.Problems) == 0 && (s.Lease < MinLease || s.Lease > MaxLease) {
		r.Fail(n, fmt.Sprintf("write a time from %.0fs to %.0fh", MinLease.Seconds(), MaxLease.Hours()), "%s is %s", what,
			yamlfile.Follow(n).Value)
	}
}

func has(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
	s.Has = map[string]int64{}
	texts := []string{}
	if yamlfile.Follow(n).Kind == yaml.MappingNode {
		for _, f := range r.Mapping(n, what) {
			if value, ok := r.Text(f.Value, what+": "+f.Key.Value); ok {
				texts = append(texts, f.Key.Value+"="+value)
			}
		}
	} else {
		texts = r.Texts(n, what)
	}
	for _, text := range texts {
		name, number, _ := strings.Cut(text, "=")
		count, err := quantity.Whole(number)
		if err != nil || !variableName.MatchString(name) {
			r.Fail(yamlfile.Follow(n), "write what a pilot has as `has: [gpu=2]`",
				"%s: %q is no number of something", what, text)
		}
		s.Has[name] = count
	}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func environment(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
	s.Environment = r.Texts(n, what)
	for _, name := range s.Environment {
		if !variableName.MatchString(name) {
			r.Fail(yamlfile.Follow(n), "write names such as LANG; `setup: export NAME=VALUE` gives a value",
				"%s: %q is no name of a variable", what, name)
		}
	}
}

func policies() (names []string) {
	for _, p := range eviction.Policies {
		names = append(names, string(p))
	}
	return names
}

func cacheWith(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
	s.CacheWith = r.Texts(n, what)
	for _, name := range s.CacheWith {
		if !isSiteName(name) || name == s.Name {
			r.Fail(yamlfile.Follow(n), "write names of other sites", "%s: %q is no site with which caches could be shared", what,
				name)
		}
	}
}

// checkCache refuses what would leave no room for any file, or share nothing.
func (r *reader) checkCache(s *Site, nodes map[string]*yaml.Node, what string) {
	if n := nodes["cache_with"]; n != nil && s.Cache != CacheGlobal && !r.failed() {
		r.Fail(n, "add `cache: global`", "%s: nobody reads caches of other sites without a global cache", what)
	}
	shared := s.Cache == CacheGlobal || s.Cache == CacheHost
	if n := nodes["share_cache"]; n != nil && s.GroupCache && !shared && !r.failed() {
		r.Fail(n, "add `cache: host`, or `cache: global`", "%s: pilots of a group share only what those of a user do", what)
	}
	if n := nodes["cache_space"]; n != nil && s.Cache == CacheNone && !r.failed() {
		r.Fail(n, "remove it, or `cache: none`", "%s has no cache, and a size for it", what)
	}
	if n := nodes["cache_policy"]; n != nil && s.Cache == CacheNone && !r.failed() {
		r.Fail(n, "remove it, or `cache: none`", "%s has no cache, and a policy for it", what)
	}
	space := s.CacheSpace
	if space == 0 {
		space = DefaultCacheSpace
	}
	switch n := nodes["min_threshold"]; {
	case n == nil || r.failed():
	case s.Cache == CacheNone:
		r.Fail(n, "remove it", "%s has no cache, and keeps a part of it free", what)
	case s.MinThreshold >= space:
		r.Fail(n, "write less than cache_space", "%s: min_threshold is the whole cache", what)
	}
}

// checkExchange refuses sites that exchange cached files with one that is not there. One
// that does not name the other in return is let be: it may be about to.
func (r *reader) checkExchange(fields []yamlfile.Field, sites []*Site) {
	for i, s := range sites {
		for _, with := range s.CacheWith {
			if !r.failed() && !slices.ContainsFunc(sites, func(s *Site) bool { return s.Name == with }) {
				r.Fail(fields[i].Value, "name a site of this file", "site %q: cache_with: there is no site %q", s.Name, with)
			}
		}
	}
}

var scratchForm = regexp.MustCompile(`^(\$[A-Za-z_][A-Za-z0-9_]*|\$\{[A-Za-z_][A-Za-z0-9_]*\}|)(/[^\x00\n]*)?$`)

func scratch(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
	value, ok := r.Text(n, what)
	if ok && (value == "" || !scratchForm.MatchString(value)) {
		r.Fail(n, "write a path from /, or one that begins with a variable, such as $TMPDIR",
			"%s: %q is no path from the root", what, value)
	}
	s.Scratch = value
}

type read = func(*yamlfile.Reader, *yaml.Node, *Site, string)

// word reads one of some words. no says what another one is.
func word(no string, take func(s *Site, word string), words ...string) read {
	between := ", "
	if len(words) == 2 {
		between = " or "
	}
	return func(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
		text, _ := r.Text(n, what)
		if take(s, text); !slices.Contains(words, text) {
			r.Fail(n, "write "+strings.Join(words, between), "%s: %q %s", what, text, no)
		}
	}
}

func count(least int64, field func(*Site) *int) read {
	return func(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
		if text, ok := r.Text(n, what); ok {
			value := r.Integer(n, text, what, least)
			if value > MaxPilots {
				r.Fail(n, fmt.Sprintf("write a number up to %d", MaxPilots), "%s is %d", what, value)
			}
			*field(s) = int(value)
		}
	}
}

// shownForm is of what a batch system may call a queue or an account. It is written into
// scripts.
var shownForm = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.:@,+=/-]*$`)

func isShownName(name string) bool { return len(name) <= 200 && shownForm.MatchString(name) }

func name(field func(*Site) *string) read {
	return func(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
		value, ok := r.Text(n, what)
		if ok && !isShownName(value) {
			r.Fail(n, "write it as the batch system shows it, without spaces", "%s: %q is no such name", what, value)
		}
		*field(s) = value
	}
}

func text(field func(*Site) *string) read {
	return func(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
		value, ok := r.Text(n, what)
		if ok && strings.Contains(value, "\x00") {
			r.Fail(n, "remove it", "%s has a character of the value 0", what)
		}
		*field(s) = value
	}
}

func texts(field func(*Site) *[]string) read {
	return func(r *yamlfile.Reader, n *yaml.Node, s *Site, what string) {
		*field(s) = r.Texts(n, what)
		for _, value := range *field(s) {
			if value == "" || strings.ContainsAny(value, "\n\r\x00") {
				r.Fail(yamlfile.Follow(n), "write each into one line", "%s: %q is not one line", what, value)
			}
		}
	}
}
