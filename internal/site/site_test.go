package site

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/internal/batch/command"
	"fairway/internal/bootstrap"
	"fairway/internal/yamlfile"
	"fairway/test/files"
)

const twoSites = `# Sites of the group.
sites:
  cluster: # the new one
    system: slurm
    partition: batch
    account: phys
    max_pilots: 4
    time: 2h
    lease: 30m
    cpus: 16
    memory: 64GB
    options: [--constraint=avx2, '--comment=a b']
    tools: [bowtie2, samtools]
    modules: gcc/12
    setup: |
      ulimit -s unlimited
    scratch: $SCRATCH/fairway
    has: [gpu=2]
    environment: [LANG, R_LIBS]
    cache: pilot
    cache_space: 50GB
    min_threshold: 5GB

  # The old one.
  farm:
    system: gridengine
    queue: all.q
    cpus: 2
    parallel_environment: smp
`

func TestParse(t *testing.T) {
	sites, err := Parse("sites.yaml", []byte(twoSites))
	if err != nil || len(sites) != 2 {
		t.Fatal(sites, err)
	}
	s := sites[0]
	if s.Name != "cluster" || s.Line != 3 || s.MaxPilots != 4 || s.Request.Time != 2*time.Hour || s.Request.CPUs != 16 ||
		s.Request.Memory != 64e9 || len(s.Request.Options) != 2 || s.Modules[0] != "gcc/12" ||
		s.Scratch != "$SCRATCH/fairway" ||
		s.IdleTimeout != DefaultIdleTimeout || s.Lease != 30*time.Minute || s.Shares != SharesFolder ||
		s.Cache != CachePilot || s.MinThreshold != 5e9 ||
		s.Has["gpu"] != 2 || len(s.Environment) != 2 {
		t.Errorf("%+v", s)
	}
	if sites[1].MaxPilots != DefaultMaxPilots || sites[1].Scratch != DefaultScratch ||
		sites[1].Template.Name != "gridengine" {
		t.Errorf("%+v", sites[1])
	}
}

// Somebody who writes something that means nothing must be told where, and what to
// write instead: a key that is passed over would give other pilots than were meant.
func TestProblems(t *testing.T) {
	for text, want := range map[string]string{
		"":                                           "the file is empty; start with `sites:`",
		"a: {system: slurm}":                         `unknown key "a" in the file; known here: sites`,
		"sites: {a: {}}":                             `s.yaml:1:9: site "a" has no system; add`,
		"sites: {a: {system: sge}}":                  `"sge" is no batch system known here; write ` + "`system: gridengine`",
		"sites: {a: {system: slrum}}":                `did you mean "slurm"?`,
		"sites: {a: {system: local}}":                "leave it out",
		"sites: {a: {system: slurm, queue: x}}":      `site "a": the system slurm has no queue; write ` + "`partition:`",
		"sites: {a: {system: slurm, walltime: 2h}}":  "write `time: DURATION`, such as 12h",
		"sites: {a: {system: slurm, nodes: 4}}":      "a pilot has one node, and max_pilots says how many",
		"sites: {a: {system: slurm, max_pilots: 0}}": "write a whole number from 1",

		"sites: {a: {system: slurm, max_pilots: 9, min_pilots: 10}}": "min_pilots is 10, more than max_pilots, 9; raise max_pilots",
		"sites: {a: {system: slurm, partition: 'x y'}}":              `"x y" is no such name`,
		"sites: {a: {system: slurm, options: [\"a\\nb\"]}}":          "write each into one line",
		"sites: {a: {system: slurm, scratch: tmp}}":                  `"tmp" is no path from the root`,
		"sites: {a: {system: slurm, shares: all}}":                   "write folder or nothing",
		"sites: {a: {system: slurm, cache: node}}":                   `"node" does not say who shares a cache; write global, host, pilot, none`,
		"sites: {a: {system: slurm, cache_with: b}}":                 "add `cache: global`",
		"sites: {a: {system: slurm, cache: global, cache_with: d}}":  `site "a": cache_with: there is no site "d"; name a site of this file`,
		"sites: {a: {system: slurm, share_cache: all}}":              `"all" does not say whose pilots share a cache; write user or group`,
		"sites: {a: {system: slurm, share_cache: group}}":            "add `cache: host`, or `cache: global`",
		"sites: {a: {system: slurm, cache: none, cache_space: 5GB}}": `site "a" has no cache, and a size for it; remove it`,
		"sites: {a: {system: slurm, cache_with: a}}":                 `"a" is no site with which caches could be shared`,
		"sites: {a: {system: slurm, cache_size: 5GB}}":               "write `cache_space: 50GB`",
		"sites: {a: {system: slurm, min_threshold: 10GiB}}":          "min_threshold is the whole cache; write less than cache_space",

		"sites: {a: {system: slurm, cache: none, min_threshold: 1GB}}": "has no cache, and keeps a part of it free; remove it",
		"sites: {a: {system: gridengine, shares: nothing}}":            "gridengine is not known to keep scripts from other users; write `shares: folder`",
		"sites: {a: {system: lsf, shares: nothing}}":                   "scripts of pilots that share nothing hold a secret",
		"sites: {a: {system: gridengine, cpus: 2}}":                    "add `parallel_environment: NAME`",
		"sites: {a: {system: command}}":                                "has the system command, and no template",
		"sites: {a: {system: slurm, command: {}}}":                     "write `system: command`",

		"sites: {a: {system: command, command: {submit: x, status: y, cancel: '{jid}', job: '(?P<name>', states: {}}}}": "{jid} has no value",

		"sites: {a: {system: slurm, lease: 0s}}": "lease is 0s; write a time from 1s to 24h",
		"sites: {a: {system: slurm, lease: 2d}}": "lease is 2d; write a time from 1s to 24h",

		"sites: {a: {system: ssh}}":                                    "add `hosts: [node1, node2]`",
		"sites: {a: {system: slurm, hosts: [n1]}}":                     "the system slurm has no hosts",
		"sites: {a: {system: ssh, hosts: [-oProxyCommand=x]}}":         "is no name of a host",
		"sites: {a: {system: ssh, hosts: [n1, n1]}}":                   "names n1 twice",
		"sites: {a: {system: ssh, hosts: [n1], max_pilots: 2}}":        "there is one pilot on each of its 1 host",
		"sites: {a: {system: ssh, hosts: [n1], queue: x}}":             "the system ssh has no queue",
		"sites: {a: {system: ssh, hosts: [n1], options: [--port=22]}}": "write a keyword of ssh_config",
		"sites: {a: {system: ssh, hosts: n1, user: me}}":               "write `hosts: [USER@HOST]`",

		"sites: {local: {system: slurm}}":                    `"local" is no name for a site`,
		"sites: {a: {system: slurm}}\n---\nsites: {}":        "a second YAML document begins here",
		"sites: {a: {system: slurm}, a: {system: slurm}}":    `sites has "a" twice`,
		"sites: {a: {system: slurm, time: 10 min, cpus: x}}": "is no duration",
	} {
		_, err := Parse("s.yaml", []byte(text))
		if problems, ok := errors.AsType[yamlfile.Problems](err); !ok || !strings.Contains(problems.Error(), want) {
			t.Errorf("%s\n  gives %v\n  want  %s", text, err, want)
		}
	}
}

// What a template describes must not depend on which program it came with.
func TestReadyTemplatesAreRight(t *testing.T) {
	for _, name := range command.Names() {
		if _, err := command.Ready(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The file is a person's: comments and order must outlive `fairway site add` and
// `fairway site remove`.
func TestEditsKeepWhatStandsThere(t *testing.T) {
	file := filepath.Join(t.TempDir(), "deep", FileName)
	mustAdd := func(name string, settings ...Setting) {
		t.Helper()
		if _, err := Add(file, name, settings); err != nil {
			t.Fatal(err)
		}
	}
	mustAdd("first", Setting{"system", []string{"slurm"}}, Setting{"options", []string{"--exclusive", "--comment=a: b"}})
	if err := os.WriteFile(file, []byte(twoSites), 0o600); err != nil {
		t.Fatal(err)
	}
	mustAdd("third", Setting{"system", []string{"slurm"}}, Setting{"setup", []string{"a=1\nb='x: y'"}},
		Setting{"account", []string{"0123"}})
	text, _ := os.ReadFile(file)
	if !strings.HasPrefix(string(text), twoSites) {
		t.Errorf("the file was written over:\n%s", text)
	}
	sites, err := Parse(file, text)
	if err != nil || len(sites) != 3 || sites[2].Setup != "a=1\nb='x: y'" || sites[2].Request.Account != "0123" {
		t.Fatalf("%v in\n%s", err, text)
	}
	if _, err := Add(file, "farm", nil); err == nil || !strings.Contains(err.Error(), "describes a site farm already") {
		t.Error(err)
	}
	if _, err := Add(file, "fourth", []Setting{{"system", []string{"slurm"}}, {"queue", []string{"x"}}}); err == nil ||
		!strings.Contains(err.Error(), "has no queue") {
		t.Error(err)
	}
	for _, s := range []*Site{sites[0], nil, nil} {
		if s == nil {
			left, err := Parse(file, []byte(files.Read(t, file)))
			if err != nil {
				t.Fatal(err)
			}
			s = left[0]
		}
		if err := Remove(s); err != nil {
			t.Fatal(err)
		}
	}
	if got := files.Read(t, file); !strings.Contains(got, "# Sites of the group.") || strings.Contains(got, "system") {
		t.Errorf("left:\n%s", got)
	}
	mustAdd("again", Setting{"system", []string{"slurm"}})
}

// The description beside a workflow is the one that its author meant.
func TestFilesBesideTheWorkflowWin(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", filepath.Join(folder, "config"))
	user, err := UserFile()
	if err != nil {
		t.Fatal(err)
	}
	for file, account := range map[string]string{user: "mine", filepath.Join(folder, FileName): "ours"} {
		if _, err := Add(
			file, "cluster", []Setting{{"system", []string{"slurm"}}, {"account", []string{account}}},
		); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Add(user, "other", []Setting{{"system", []string{"slurm"}}}); err != nil {
		t.Fatal(err)
	}
	if s, err := Find(folder, "cluster"); err != nil || s.Request.Account != "ours" {
		t.Error(s, err)
	}
	if _, err := Find(folder, "other"); err != nil {
		t.Error(err)
	}
	if unknown, ok := errors.AsType[*UnknownError](
		func() error { _, err := Find(folder, "clutser"); return err }(),
	); !ok || !strings.Contains(unknown.Advice, `"cluster"`) {
		t.Error(unknown)
	}
}

// A script must do what the site says whatever characters its folder has.
func TestScript(t *testing.T) {
	sites, err := Parse("sites.yaml", []byte(twoSites))
	if err != nil {
		t.Fatal(err)
	}
	system, err := sites[0].Open(Launcher{
		State: "0123456789abcdef", Folder: t.TempDir(),
		Start: func(launch string) (bootstrap.Start, error) {
			return bootstrap.InPlace("/it's/fairway", "/a b/"+launch+".log", "pilot", "--connect", "/a b/"+launch+".connect"),
				nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	script, _, err := system.Text("l-1")
	if err != nil {
		t.Fatal(err)
	}
	want := `#!/bin/sh
#SBATCH --job-name=fairway.0123456789ab.l-1
#SBATCH --nodes=1 --ntasks=1 --no-requeue
#SBATCH --output=/dev/null --error=/dev/null
#SBATCH --partition=batch
#SBATCH --account=phys
#SBATCH --time=120
#SBATCH --cpus-per-task=16
#SBATCH --mem=61292M
#SBATCH --constraint=avx2
#SBATCH --comment=a b
exec >>'/a b/l-1.log' 2>&1 </dev/null
` + findModules + `module load 'gcc/12' || exit
ulimit -s unlimited
exec '/it'\''s/fairway' 'pilot' '--connect' '/a b/l-1.connect'
`
	if script != want {
		t.Errorf("got\n%s\nwant\n%s", script, want)
	}
}

// Scripts with secrets go to the batch system, and stay in no file on the way.
func TestASecretScriptStaysNowhere(t *testing.T) {
	for how, template := range map[string]string{
		"on standard input": "shares: nothing, command: {submit: [tee, OUT]",
		"as a file":         "command: {submit: [cp, '{script}', OUT], uploads: true",
	} {
		t.Run(how, func(t *testing.T) {
			folder, got := t.TempDir(), filepath.Join(t.TempDir(), "submitted")
			sites, err := Parse("sites.yaml", []byte("sites: {far: {system: command, "+strings.ReplaceAll(template, "OUT", got)+
				`, private: true, status: ["true"], cancel: ["true"], job: '(?P<name>x)(?P<id>x)(?P<state>x)', states: {}}}}`))
			if err != nil {
				t.Fatal(err)
			}
			system, err := sites[0].Open(Launcher{State: "0123456789abcdef", Folder: folder,
				Start: func(string) (bootstrap.Start, error) {
					return bootstrap.Start{Before: "begin\n", After: "SECRET\n"}, nil
				}})
			if err != nil {
				t.Fatal(err)
			}
			if err := system.Submit(t.Context(), "l-1"); err != nil {
				t.Fatal(err)
			}
			if text := files.Read(t, got); text != "#!/bin/sh\nbegin\nSECRET\n" {
				t.Errorf("submitted: %q", text)
			}
			if left, _ := os.ReadDir(folder); len(left) > 0 {
				t.Error("written down:", left)
			}
		})
	}
}

// No text may stop the reader, and what it accepts must be usable.
func FuzzParse(f *testing.F) {
	f.Add(twoSites)
	f.Add("sites: {a: {system: command, command: {submit: [x], status: y, cancel: '{id}', job: " +
		"'(?P<name>)(?P<id>)(?P<state>)', states: {gone: x}}}}")
	f.Fuzz(func(t *testing.T, text string) {
		sites, err := Parse("f.yaml", []byte(text))
		if err != nil {
			return
		}
		for _, s := range sites {
			if s.Template == nil || s.System == "" || s.MaxPilots < 1 || s.MinPilots > s.MaxPilots || s.Scratch == "" {
				t.Fatalf("%+v", s)
			}
			for _, line := range s.Request.Options {
				if strings.ContainsAny(line, "\n\r") {
					t.Fatalf("an option of several lines: %q", line)
				}
			}
		}
	})
}

// What a choice among sites takes into account, and what a pilot has, in both forms.
func TestChoiceAmongSites(t *testing.T) {
	for _, has := range []string{"{gpu: 2}", "[gpu=2]", "gpu=2"} {
		text := "sites:\n  a: {system: slurm, price: 10m, queue_wait: 1h, near: 'root://se/', placement: by-files, " +
			"has: " + has + "}\n"
		sites, err := Parse("sites.yaml", []byte(text))
		if err != nil {
			t.Fatal(has, err)
		}
		s := sites[0]
		if s.Price != 10*time.Minute || s.QueueWait != time.Hour || s.Near != "root://se/" || s.Has["gpu"] != 2 ||
			s.Placement != "by-files" {
			t.Errorf("%+v", s)
		}
	}
	_, err := Parse("sites.yaml", []byte("sites:\n  a: {system: slurm, resources: {gpu: 2}}\n"))
	if err == nil || !strings.Contains(err.Error(), "write `has: {gpu: 2}`") {
		t.Error(err)
	}
}
