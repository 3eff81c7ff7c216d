//go:build linux

package cli

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"fairway/internal/cli/console"
	"fairway/internal/provision"
	"fairway/internal/site"
)

// Every flag of every command is tried: by a row of flagRows, which says what a user sees differ with
// it and without, or by a script or a test that runs the program with it. What neither does stands in
// untried, with the reason.
func TestEveryFlagIsTried(t *testing.T) {
	texts := programTests(t)
	tried := map[string]bool{}
	for _, row := range flagRows {
		tried[row.command+" --"+row.flag] = true
	}
	shared := &cobra.Command{Use: "shared"}
	commandsOf(new(console.Console)).serverFlags(shared, newRunOptions())
	webFlag(shared, newRunOptions())
	var missing []string
	eachFlag(allCommands(new(console.Console)), func(command *cobra.Command, flag *pflag.Flag) {
		name := strings.TrimPrefix(command.CommandPath(), "fairway ") + " --" + flag.Name
		is := tried[name] || command.CommandPath() == "fairway site add" || // TestSiteAddWritesEachKey
			usedIn(texts, command, flag)
		// One function gives run, exec, map, open and serve the flags that say how a run goes.
		if !is && shared.Flags().Lookup(flag.Name) != nil {
			is = slices.ContainsFunc([]string{"run", "exec", "map", "open", "serve"}, func(other string) bool {
				return tried[other+" --"+flag.Name] || usedIn(texts, &cobra.Command{Use: other}, flag)
			})
		}
		reason := untried[name]
		delete(untried, name)
		switch {
		case is && reason != "":
			t.Errorf("%s is tried: take it out of untried", name)
		case !is && reason == "":
			missing = append(missing, name)
		}
	})
	for name := range untried {
		t.Errorf("%s is in untried, and no flag", name)
	}
	if len(missing) > 0 {
		t.Errorf("no test tries these flags; write a row of flagRows for each:\n%s", strings.Join(missing, "\n"))
	}
}

// untried are flags that no test tries, with the reason.
var untried = map[string]string{
	"login --output": "a login wants a provider and a browser (test/service), where the default place is tried",
	"serve --tool":   "nothing is seen of where pilots look ahead; internal/server tries it by its setting",
}

// eachFlag calls do with each flag that a person can see, at the command that has it.
func eachFlag(command *cobra.Command, do func(*cobra.Command, *pflag.Flag)) {
	if command.Hidden {
		return
	}
	see := func(flag *pflag.Flag) {
		if flag.Name != "help" && !flag.Hidden {
			do(command, flag)
		}
	}
	command.NonInheritedFlags().VisitAll(see)
	for _, below := range command.Commands() {
		eachFlag(below, do)
	}
}

// brokenCall is where the arguments of a call go on in the next line.
var brokenCall = regexp.MustCompile(`,\n\s*`)

// programTests are the lines of scripts and tests that run the program.
func programTests(t *testing.T) (lines []string) {
	t.Helper()
	err := filepath.WalkDir("../../test", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".txtar") && !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		text = brokenCall.ReplaceAll(text, []byte(", "))
		for line := range strings.Lines(string(text)) {
			if strings.Contains(line, "-") {
				lines = append(lines, line)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

// usedIn reports whether a line calls the command with the flag.
func usedIn(lines []string, command *cobra.Command, flag *pflag.Flag) bool {
	form := `(?:--` + flag.Name + `\b`
	if flag.Shorthand != "" {
		form += `|[ "]-` + flag.Shorthand + `[ ",]`
	}
	name := `.*\b` + command.Name() + `\b.*`
	if !command.HasParent() && command.Name() == "fairway" { // its flags are those of all commands
		name = ".*"
	}
	calls := regexp.MustCompile(`(?:fairway|")` + name + form + `)`)
	return slices.ContainsFunc(lines, calls.MatchString)
}

// flagRow says what differs with a flag: a person who calls the program sees something only with it
// (shows), or only without it (hides). What is seen is what was printed, the exit code and, in a folder
// of its own, the files there.
type flagRow struct {
	command, flag string // as in the name of the subtest
	with          string // the call, in words; DIR is the folder, RUN that of a finished run
	without       string // empty: the call without the flag and its value
	shows, hides  string // patterns
}

// Rows whose calls begin with "in RUN" look at the finished run; others have a folder of their own with
// the same workflow, in which nothing was run.
var flagRows = []flagRow{
	{"", "dir", "jobs -C RUN", "jobs", `up/a`, ""},
	{"", "json", "in RUN jobs --json", "", `"jobs": \[`, ""},
	{"jobs", "state", "in RUN jobs --state failed", "", "", `up/a`},
	{"jobs", "step", "in RUN jobs --step all", "", "", `up/a`},
	{"jobs", "limit", "in RUN jobs --limit 1", "", `1 of 4 jobs`, `up/b`},
	{"jobs", "after", "in RUN jobs --after 3", "", "", `up/a`},
	{"logs", "tail", "in RUN logs up/a --tail 2", "", "", `word is one`},
	{"logs", "attempt", "in RUN logs up/a --attempt 7", "", `exit code 6`, `word is one`},
	{"logs", "task", "in RUN logs up/a --task 3", "", `exit code [26]`, `word is one`},
	{"logs", "pilot", "in RUN logs --pilot none", "in RUN logs up/a", `exit code 6`, `word is one`},
	{"files", "limit", "in RUN files --limit 1", "", "", `up/b.txt`},
	{"get", "version", "in RUN get all.txt - --version 7", "", `exit code 6`, `ONE`},
	{"graph", "format", "in RUN graph --format svg", "", `<svg`, `flowchart`},
	{"graph", "output", "graph --output g.txt", "", `file g.txt`, `\Aflowchart`},
	{"export", "format", "in RUN export --format 1.6", "", `"schemaVersion": "1.6"`, `"schemaVersion": "1.5"`},
	{"export", "output", "-C RUN export --output e.json", "", `file e.json`, ""},
	{"export", "license", "-C RUN export --format ro-crate -o c --license CC0-1.0", "", `CC0-1\.0`, ""},
	{"export", "agent", "-C RUN export --format ro-crate -o c --agent Ada", "", `Ada`, ""},
	{"export", "workflow", "-C RUN export --format ro-crate -o c --workflow none.yaml", "", `cannot read the workflow`, ""},
	{"report", "output", "-C RUN report --output r.html", "", `file r.html`, `\A<!`},
	{"what-if", "slots", "in RUN what-if --slots 4", "", "", `step \w+ twice as fast`},
	{"what-if", "pilots", "in RUN what-if --pilots 3", "", `with 3 pilots`, `step \w+ twice as fast`},
	{"what-if", "cache", "in RUN what-if --cache none", "", "", `step \w+ twice as fast`},
	{"what-if", "faster", "in RUN what-if --faster all=2", "", `all twice as fast`, ""},
	{"what-if", "no-wait", "in RUN what-if --no-wait", "", "", `step \w+ twice as fast`},
	{"what-if", "draws", "in RUN what-if --draws -1", "", `exit code 2`, `step \w+ twice as fast`},
	{"check", "set", "check --set other=1", "", `exit code 3`, `in order`},
	{"check", "site", "check --site none", "", `exit code 6`, `in order`},
	{"check", "fix", "check misspelt.yaml --fix", "", `file misspelt.yaml.*\n(.*\n)*.*command:`, ""},
	{"check", "dry-run", "check misspelt.yaml --fix --dry-run", "", `would be made`, `misspelt.yaml: 1 change made`},
	{"run", "dry-run", "run --dry-run", "", `4 jobs would run`, `job bad failed`},
	{"run", "set", "run --dry-run --set other=1", "", `exit code 3`, `would run`},
	{"run", "until", "run --dry-run --until up", "", `2 jobs would run`, `4 jobs would run`},
	{"run", "force", "run --dry-run --force none", "", `exit code 6`, `would run`},
	{"run", "notify", "run --until up --notify DIR/tell", "", `file told`, ""},
	{"run", "web", "run --until up --web=127.0.0.1:0", "", `fairway/link`, ""},
	{"run", "results", "run --until up --results DIR/there", "", `file there/up/a.txt`, `file results/up/a.txt`},
	{"run", "pilots", "run --dry-run --pilots -1", "", `exit code 2`, `would run`},
	{"run", "has", "run --dry-run --has gpu", "", `exit code 2`, `would run`},
	{"run", "cache", "run --dry-run --cache some", "", `exit code 2`, `would run`},
	{"run", "cache-policy", "run --dry-run --cache-policy some", "", `exit code 2`, `would run`},
	{"run", "placement", "run --dry-run --placement some", "", `exit code 2`, `would run`},
	{"run", "cache-space", "run --dry-run --cache-space much", "", `exit code 2`, `would run`},
	{"run", "listen", "run --dry-run --listen :1", "", `exit code 2`, `would run`},
	{"exec", "print", "exec --print --writes o -- true", "exec --writes o --reads none -- true", `(?m)^workflow: exec`, ""},
	{"exec", "reads", "exec --print --writes o --reads a -- true", "", `files: a`, ""},
	{"exec", "writes", "exec --print --writes o -- true", "exec --print -- true", `writes: \[o\]`, `exit code 2`},
	{"exec", "needs", "exec --print --writes o --needs cpus=3 -- true", "", `cpus: 3`, ""},
	{"exec", "attempts", "exec --print --writes o --attempts 4 -- true", "", `attempts: 4`, ""},
	{"exec", "checkpoint", "exec --print --writes o --checkpoint state/ -- true", "", `checkpoint: state/`, ""},
	{"exec", "tasks", "exec --print --writes o --tasks 3 -- true", "", `tasks: 3`, ""},
	{"exec", "nodes", "exec --print --writes o --nodes 3 -- true", "", `nodes: 3`, ""},
	{"exec", "once", "exec --print --writes o --tasks 3 --once -- true", "", `once: true`, ""},
	{"exec", "group", "exec --group g -- true", "exec --writes o --reads none -- true", `exit code 2`, ""},
	{"exec", "priority", "exec --print --writes o --priority 5 -- true", "", `priority: 5`, ""},
	{"map", "priority", "map --print --each in/{x}.txt --writes {x} --priority 5 -- true", "", `priority: 5`, ""},
	{"run", "priority", "run --until up --priority 7 ; show up/a --json", "", `"priority": 7`, `"priority": 0`},
	{"prioritize", "priority", "run --keep-going ; prioritize bad --priority 7 ; show bad --json",
		"run --keep-going ; show bad --json", `"priority": 7`, ""},
	{"map", "each", "map --print --each in/{x}.txt --writes {x} -- true", "map --print --writes o -- true",
		`files: in/\{x\}`, ""},
	{"map", "attempts", "map --print --each in/{x}.txt --writes {x} --attempts 4 -- true", "", `attempts: 4`, ""},
	{"map", "checkpoint", "map --print --each in/{x}.txt --writes {x} --checkpoint state/ -- true", "", `state/`, ""},
	{"map", "tasks", "map --print --each in/{x}.txt --writes {x} --tasks 3 -- true", "", `tasks: 3`, ""},
	{"map", "nodes", "map --print --each in/{x}.txt --writes {x} --nodes 3 -- true", "", `nodes: 3`, ""},
	{"map", "once", "map --print --each in/{x}.txt --writes {x} --tasks 3 --once -- true", "", `once: true`, ""},
	{"map", "group", "map --group g --each in/{x}.txt --writes {x} -- true",
		"map --each none/{x} --writes {x} -- true", `exit code 2`, ""},
	{"open", "group", "open --group g", "open --name a/b", `--group`, ""},
	{"submit", "until", "submit --until none", "", `"?none"?`, ""},
	{"sim", "seed", "sim RUN/sim.yaml --seed 9", "", "", ""},
	{"sim", "repetitions", "sim RUN/sim.yaml --repetitions 2", "", "", ""},
	{"sim", "out", "sim RUN/sim.yaml --out made", "", `file made/runs.csv`, ""},
	{"sim faults", "seeds", "sim faults --seeds 1", "sim faults --seeds 2", `(?m)^1 seeds`, `(?m)^2 seeds`},
	{"serve", "lease", "serve --lease 3s", "serve --state RUN", `--lease`, ""},
	{"serve", "rights", "serve --rights none.yaml", "serve --state RUN", `none\.yaml`, ""},
	{"serve", "web-key", "serve --web-key none", "serve --state RUN", `web`, ""},
	{"serve", "web-certificate", "serve --web-certificate none", "serve --state RUN", `web`, ""},
	{"clean", "results", "run --until up ; clean --results", "", "", `file results/up/a.txt`},
}

// A person sees something else with each of the flags than without it.
func TestFlagsDiffer(t *testing.T) {
	t.Setenv(console.ServerVariable, "")
	t.Setenv("XDG_CONFIG_HOME", t.TempDir())
	finished := flagFolder(t)
	if seen := called(t, finished, finished, "run --keep-going"); !strings.Contains(seen, "exit code 1") {
		t.Fatal(seen)
	}
	for _, row := range flagRows {
		t.Run(row.command+" --"+row.flag, func(t *testing.T) {
			without := row.without
			if without == "" {
				without = withoutFlag(t, row)
			}
			before, after := called(t, "", finished, without), called(t, "", finished, row.with)
			shows, hides := regexp.MustCompile(row.shows), regexp.MustCompile(row.hides)
			switch {
			case row.shows == "" && row.hides == "" && before == after:
				t.Errorf("%s and %s: the same is seen: %s", without, row.with, few(after))
			case row.shows != "" && (shows.MatchString(before) || !shows.MatchString(after)):
				t.Errorf("only the second shows %q:\n%s: %s\n%s: %s", row.shows, without, few(before), row.with, few(after))
			case row.hides != "" && (!hides.MatchString(before) || hides.MatchString(after)):
				t.Errorf("only the first shows %q:\n%s: %s\n%s: %s", row.hides, without, few(before), row.with, few(after))
			}
		})
	}
}

func few(text string) string { return text[:min(len(text), 2000)] }

// withoutFlag is the call of a row without its flag.
func withoutFlag(t *testing.T, row flagRow) string {
	t.Helper()
	root := allCommands(new(console.Console))
	command, _, err := root.Find(strings.Fields(row.command))
	if err != nil {
		t.Fatal(err)
	}
	var flag *pflag.Flag
	for _, flags := range []*pflag.FlagSet{command.Flags(), command.PersistentFlags(), command.InheritedFlags()} {
		if found := flags.Lookup(row.flag); found != nil {
			flag = found
		}
	}
	if flag == nil {
		t.Fatalf("there is no flag --%s", row.flag)
	}
	words := strings.Fields(row.with)
	at := slices.IndexFunc(words, func(word string) bool {
		return word == "--"+row.flag || strings.HasPrefix(word, "--"+row.flag+"=")
	})
	if at < 0 {
		t.Fatalf("%s: there is no --%s", row.with, row.flag)
	}
	n := 1
	if words[at] == "--"+row.flag && flag.Value.Type() != "bool" {
		n = 2
	}
	return strings.Join(slices.Delete(words, at, at+n), " ")
}

// called is what a person sees of calls in a folder; empty: in one of their own, whose files are seen too,
// or in that of the finished run.
func called(t *testing.T, folder, finished, calls string) string {
	t.Helper()
	calls, inFinished := strings.CutPrefix(calls, "in RUN ")
	own := folder == "" && !inFinished
	switch {
	case own:
		folder = flagFolder(t)
	case inFinished:
		folder = finished
	}
	t.Chdir(folder)
	seen := ""
	for call := range strings.SplitSeq(calls, " ; ") {
		words := strings.Fields(strings.NewReplacer("DIR", folder, "RUN", finished).Replace(call))
		var out, complained strings.Builder
		code := execute(t.Context(), allCommands, words, strings.NewReader(""), &out, &complained)
		seen = fmt.Sprintf("%s\n%s\nexit code %d\n", out.String(), complained.String(), code)
	}
	if !own {
		return seen
	}
	err := fs.WalkDir(os.DirFS(folder), ".", func(path string, entry fs.DirEntry, err error) error {
		if entry.IsDir() {
			if entry.Name() == console.StateFolder {
				return fs.SkipDir
			}
			return err
		}
		text, _ := os.ReadFile(path)
		if flagFiles[path] == string(text) {
			return err
		}
		seen += fmt.Sprintf("file %s\n%s\n", path, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(seen, folder, "DIR")
}

// flagFiles are a workflow of four jobs, of which one fails, and what rows need besides.
var flagFiles = map[string]string{
	"in/a.txt": "one\n", "in/b.txt": "two\n",
	"tell":          "#!/bin/sh\ncat >\"$(dirname \"$0\")/told\"\n",
	"misspelt.yaml": "workflow: m\nsteps:\n  s: {writes: o, comand: 'touch \"$out\"'}\n",
	"sim.yaml": "experiment: small\nabout: A small one.\nseed: 1\nrepetitions: 1\n" +
		"workflow: {pattern: layers, jobs: 20, layers: 2, fan: 2, file_size: 700MB, run: {mean: 10m, sd: 2m, least: 1m}}\n" +
		"sites:\n  - {name: site, nodes: 2, slots: 2, started: 2}\n" +
		"storage:\n  - {name: se, bandwidth: 1.25GB, connection: 100MB, latency: 50ms}\n" +
		"network: {latency: 10ms}\ncache: {share: host, inputs: true, size: 4GB}\n",
	"workflow.yaml": `workflow: flags
parameters: {word: one}
inputs: {texts: {files: "in/{x}.txt", as: "in/{x}.txt"}}
steps:
  up: {each: "in/{x}.txt", writes: "up/{x}.txt", command: 'echo "word is $word"; tr a-z A-Z <"$in" >"$out"'}
  all: {merge: "up/{x}.txt", writes: all.txt, command: 'cat $in >"$out"'}
  bad: {writes: bad.txt, retry: {attempts: 1}, command: 'echo oops >&2; exit 3 # "$out"'}
`,
}

// flagFolder is a new folder with these files.
func flagFolder(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for name, text := range flagFiles {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

// Each key of a site is a flag of site add, and stands in the file only where the flag was given.
func TestSiteAddWritesEachKey(t *testing.T) {
	given := map[string]string{
		"time": "12h", "cpus": "4", "memory": "8GB", "has": "gpu=2", "poll": "9s", "idle_timeout": "7m", "price": "10m",
		"queue_wait": "5m", "near": "root://se.here/", "lease": "1h", "sandbox": "strict", "cache": "global",
		"share_cache": "group", "cache_space": "9GB", "cache_policy": "lru", "placement": "by-files",
		"catalog": "storage.xml", "catalog_protocol": "root", "catalog_outputs": "/store/me", "min_threshold": "2GB",
		"shares": "nothing", "scratch": "/scratch", "max_pilots": "3", "min_pilots": "1", "min_idle_pilots": "1",
		"cache_with": "other",
	}
	systems := map[string]string{"hosts": "ssh", "queue": "gridengine", "parallel_environment": "gridengine",
		"image": "kubernetes"}
	for _, key := range site.Keys {
		if key.Name == "system" {
			continue
		}
		folder := t.TempDir()
		add := func(flags string) string {
			system := cmp.Or(systems[key.Name], "slurm")
			call := "site add s --here -C " + folder + " --system " + system + flags
			switch {
			case system == "kubernetes" && flags == "":
				call += " --image other"
			case system == "ssh" && flags == "":
				call += " --hosts other"
			case key.Name == "share_cache" || key.Name == "cache_with":
				call += " --cache global"
			}
			if key.Name == "cache_with" {
				call = "site add other --here -C " + folder + " --system slurm --cache global ; " + call
			}
			seen := called(t, folder, folder, call)
			text, _ := os.ReadFile(filepath.Join(folder, site.FileName))
			_ = os.Remove(filepath.Join(folder, site.FileName))
			return seen + string(text)
		}
		value := cmp.Or(given[key.Name], "x")
		without, with := add(""), add(" --"+flagOf(key.Name)+" "+value)
		shows := regexp.MustCompile(`(?m)^ +` + key.Name + `:.*` + regexp.QuoteMeta(strings.TrimPrefix(value, "gpu=")))
		if shows.MatchString(without) || !shows.MatchString(with) {
			t.Errorf("--%s %s: without it %s\nwith it %s", flagOf(key.Name), value, without, with)
		}
	}
}

// Pilots of runs in tests are this program.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == provision.PilotCommand {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}
