package workflow

import (
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// fileKey is a key of a workflow file. It is declared once: what reads the file, the advice for an
// unknown key, the JSON Schema and the tables of docs/keys.md come from it. The last two are
// made by `go test ./internal/flow/workflow -update`.
type fileKey[T any] struct {
	name  string
	help  string                                        // one line for a person, in Markdown
	value string                                        // what it may be: a definition of the schema, or a schema itself
	read  func(p *parser, of T, n *yaml.Node, at field) // nil: it is read together with others
}

// field says where a key stands that is read.
type field struct {
	keys map[string]*yaml.Node // of the same mapping
	of   string                // what has the keys, for messages
	what string                // the key of it
}

func known[T any](
	p *parser, n *yaml.Node, what string, keys []fileKey[T], habits map[string]string,
) map[string]*yaml.Node {
	return p.Known(n, what, keyNames(keys), habits)
}

func keyNames[T any](keys []fileKey[T]) []string {
	all := make([]string, len(keys))
	for i, k := range keys {
		all[i] = k.name
	}
	return all
}

// take reads the keys that a mapping has, in the order of their table: so each knows what those
// before it have said.
func take[T any](p *parser, of T, found map[string]*yaml.Node, what string, keys []fileKey[T]) {
	for _, k := range keys {
		if n := found[k.name]; n != nil && k.read != nil {
			k.read(p, of, n, field{found, what, what + ": " + k.name})
		}
	}
}

func textOf[T any](of func(T) *string) func(*parser, T, *yaml.Node, field) {
	return func(p *parser, t T, n *yaml.Node, at field) { *of(t), _ = p.text(n, at.what) }
}

func scalarOf[T, V any](parse func(string) (V, error), of func(T) *V) func(*parser, T, *yaml.Node, field) {
	return func(p *parser, t T, n *yaml.Node, at field) { *of(t) = scalar(p, n, at.what, parse) }
}

// limitOf is scalarOf for a limit of a merge, where 0 would mean none.
func limitOf[V ~int64](parse func(string) (V, error), of func(*Step) *V) func(*parser, *Step, *yaml.Node, field) {
	return func(p *parser, s *Step, n *yaml.Node, at field) {
		p.ofMerge(n, at)
		*of(s) = max(1, scalar(p, n, at.what, parse))
	}
}

func entriesOf(of func(*Step) *[]Entry) func(*parser, *Step, *yaml.Node, field) {
	return func(p *parser, s *Step, n *yaml.Node, at field) { *of(s) = p.entries(n, at.what) }
}

const (
	variablesHelp = "[variables of the environment](commands-of-steps.md#variables-of-the-environment) of commands: `NAME` from the shell that calls `fairway run`, or `NAME=value`"
	placementHelp = "which of equal jobs a pilot gets: with most input bytes in its cache, kept for another pilot while that saves time (`by-gain`); with most bytes (`by-bytes`); with most files (`by-files`); default: what the site or `--placement` says"
	flagValue     = `{ "anyOf": [{ "type": "boolean" }, { "type": "string", "pattern": "\\$\\{" }] }`
	textOnly      = `{ "type": "string" }`
	shellHelp     = "what runs commands: `bash` (default), `sh`, or the words of a program such as `python3`"
	sandboxHelp   = "`strict`: each job sees [its own files only](pilot.md#what-a-job-may-see); `open` (default): all that the pilot's user sees"
	sandboxValue  = `{ "type": "string", "pattern": "^(strict|open)$|\\$\\{" }`
	accessHelp    = "how commands get what they read: `link` (default), `copy` to be written to, or `stream` by a URL"
)

var workflowKeys = []fileKey[*Workflow]{
	{"parameters", "values that `--set` may replace, by name; `null`: it must give one", `{
      "type": ["object", "null"],
      "propertyNames": { "$ref": "#/$defs/variable" },
      "additionalProperties": { "type": ["string", "number", "boolean", "null"] }
    }`, (*parser).parameters},
	{"workflow", "name of the workflow", "word", (*parser).workflowName},
	{"about", "one line that says what it is for", textOnly, textOf(func(w *Workflow) *string { return &w.About })},
	{"shell", shellHelp + "; for steps that have none", "shell", (*parser).workflowShell},
	{"storage", "for steps that have none: `temporary`: outputs go when they were read; `element` (default): they stay", `{ "type": "string", "pattern": "^(element|temporary)$|\\$\\{" }`, (*parser).workflowStorage},
	{"placement", placementHelp, `{ "type": "string", "pattern": "^by-(gain|bytes|files)$|\\$\\{" }`, scalarOf(taskqueue.ParsePlacement, func(w *Workflow) *taskqueue.Placement { return &w.Placement })},
	{"sandbox", sandboxHelp + "; for steps that have none", sandboxValue,
		func(p *parser, _ *Workflow, n *yaml.Node, at field) {
			p.strict = scalar(p, n, at.what, parseSandbox)
		}},
	{"variables", variablesHelp + "; for all steps", "texts",
		func(p *parser, _ *Workflow, n *yaml.Node, at field) { p.variables = p.readVariables(n, at.what) }},
	{"inputs", "data from outside, by name", `{
      "type": ["object", "null"],
      "propertyNames": { "$ref": "#/$defs/word" },
      "additionalProperties": { "$ref": "#/$defs/input" }
    }`, (*parser).inputs},
	{"limits", "[how much of a resource all jobs together have](where-jobs-run.md#limits-of-a-run), by name", `{
      "type": "object",
      "propertyNames": { "$ref": "#/$defs/variable" },
      "additionalProperties": { "$ref": "#/$defs/whole" }
    }`, (*parser).runLimits},
	{"open", "`true`: programs [submit the jobs](api.md); there are no inputs and steps", flagValue, (*parser).open},
	{"steps", "rules that create jobs, by name", `{
      "type": "object",
      "minProperties": 1,
      "propertyNames": { "$ref": "#/$defs/word" },
      "additionalProperties": { "$ref": "#/$defs/step" }
    }`, (*parser).steps},
}

// The first five say where the files are, and are read together.
var inputKeys = []fileKey[*DeclaredInput]{
	{"files", "path patterns of files that exist", "texts", nil},
	{"watch", "path patterns of files that may come until the input is closed", "texts", nil},
	{"url_list", "a file with one URL a line, which may grow until the input is closed", textOnly, nil},
	{"match", "with `url_list`: patterns of the last part of the URLs", "texts", nil},
	{"as", "the logical name of each file; default: the last part of its path", "text", nil},
	{"close", "when an open input gets no more files: `manual` (default), `after 30s idle`, or `file NAME`", `{ "type": "string", "pattern": "^(after .+ idle|manual|file .+)$" }`, (*parser).closeRule},
	{"access", accessHelp + "; unless their step says", "access", (*parser).inputAccess},
	{"may_be_empty", "whether the input may have no files", flagValue, scalarOf(parseFlag, func(in *DeclaredInput) *bool { return &in.MayBeEmpty })},
	{"catalog", "with `url_list`: a site's file catalogue, which translates lines that are no URLs", "catalog", (*parser).catalog},
}

var catalogKeys = []fileKey[*CatalogRef]{
	{"file", "`storage.xml` or `storage.json`, relative to the workflow's folder", textOnly, textOf(func(c *CatalogRef) *string { return &c.File })},
	{"protocol", "whose rules are taken; default: `direct`", textOnly, textOf(func(c *CatalogRef) *string { return &c.Protocol })},
	{"site", "in a `storage.json`; default: the first", textOnly, textOf(func(c *CatalogRef) *string { return &c.Site })},
	{"volume", "in a `storage.json`; default: the first", textOnly, textOf(func(c *CatalogRef) *string { return &c.Volume })},
}

// The last three say what the jobs execute, and are read together.
var stepKeys = []fileKey[*Step]{
	{"each", "patterns: [one job for each file](steps.md#one-job-for-each-file), or combination of files", "names", (*parser).each},
	{"merge", "patterns: [many files to one job](steps.md#merging)", "texts", (*parser).merge},
	{"files", "merge so many files", "whole", (*parser).mergeFiles},
	{"size", "merge files until they have this size together", "size", limitOf(quantity.Size, func(s *Step) *int64 { return &s.Data.Limits.Size })},
	{"max_latency", "merge what there is when a file has waited so long", "duration", limitOf(quantity.Duration, func(s *Step) *time.Duration { return &s.Data.Limits.Latency })},
	{"by", "one sequence of merges for each value of these placeholders", "texts", (*parser).by},
	{"split", "with `each`: [many jobs from one file](steps.md#splitting)", "split", (*parser).split},
	{"times", "without `each` and `merge`: [the number of jobs](steps.md#plain-steps)", "whole", (*parser).times},
	{"reads", "further files that each job reads", "names", entriesOf(func(s *Step) *[]Entry { return &s.Reads })},
	{"writes", "files that each job makes; it [chooses](steps.md#outputs-chosen-by-content) the values of free placeholders", "names", entriesOf(func(s *Step) *[]Entry { return &s.Writes })},
	{"log", "a file of messages that each job may write; it is [kept when the job fails](commands-of-steps.md)", "text", (*parser).log},
	{"rewrites", "files that each job [replaces](steps.md#rewriting)", "names", entriesOf(func(s *Step) *[]Entry { return &s.Rewrites })},
	{"needs", "[what a job needs](where-jobs-run.md): `cpus`, `memory`, `disk`, `time`, and any resource that a site names", "needs", (*parser).needs},
	{"tasks", "so many [tasks that begin together](where-jobs-run.md#jobs-of-several-tasks), each with what `needs` says", "whole", (*parser).tasks},
	{"nodes", "as `tasks`, each on a node of its own", "whole", (*parser).nodes},
	{"once", "with `tasks` or `nodes`: the first task alone runs the command, such as `mpirun`", flagValue, (*parser).onceKey},
	{"tools", "programs that must be installed", "texts", (*parser).tools},
	{"checkpoint", "a folder such as `state/` where the command saves its state; the next attempt [goes on from there](where-jobs-run.md#jobs-that-outlive-their-pilot)", textOnly, scalarOf(parseCheckpoint, func(s *Step) *string { return &s.Needs.Checkpoint })},
	{"retry", "[how often and when](where-jobs-run.md) a failed job is tried again", "retry", (*parser).retry},
	{"priority", "among ready jobs, a higher one goes first; default: 0", "whole", (*parser).priority},
	{"site", "preferred site", textOnly, textOf(func(s *Step) *string { return &s.Needs.Site })},
	{"wait_for_data", "how long a ready job may wait for a pilot that holds more of its input, if that saves time, or for the preferred site; default: 10s; `0s`: never", "duration", (*parser).waitForData},
	{"access", "[how the command gets what it reads](commands-of-steps.md#reading-files-where-they-are): " +
		"one word, or one for each variable", `{
          "anyOf": [
            { "$ref": "#/$defs/access" },
            { "type": "object", "minProperties": 1, "propertyNames": { "$ref": "#/$defs/variable" }, "additionalProperties": { "$ref": "#/$defs/access" } }
          ]
        }`, (*parser).access},
	{"storage", "where outputs stay: `element` (default: on the storage element, also for later runs), `temporary` ([until they were read](where-jobs-run.md#temporary-files)) or `cache` (made again if they are lost there)", `{ "type": "string", "pattern": "^(element|temporary|cache)$|\\$\\{" }`, (*parser).storage},
	{"publish", "whether outputs are results; default: those that no step reads", flagValue, (*parser).publish},
	{"may_be_empty", "[whether the step may produce nothing](steps.md#inputs-and-steps-without-a-result)", flagValue, scalarOf(parseFlag, func(s *Step) *bool { return &s.Data.MayBeEmpty })},
	{"sandbox", "as that of the workflow: `strict` or `open`", sandboxValue, scalarOf(parseSandbox, func(s *Step) *bool { return &s.Needs.Strict })},
	{"container", "the image of a [container](commands-of-steps.md#containers) in which commands run", `{
          "anyOf": [{ "type": "string" }, { "$ref": "#/$defs/container" }]
        }`, (*parser).inContainer},
	{"environment", "a `requirements.txt`: commands find [what it names](commands-of-steps.md#environments)", textOnly, (*parser).environment},
	{"variables", "more [variables of the environment](commands-of-steps.md#variables-of-the-environment), beside those of the workflow", "texts", (*parser).stepVariables},
	{"command", "[what each job executes](commands-of-steps.md)", "text", nil},
	{"script", "a file with the text of the command, in place of `command`", textOnly, nil},
	{"worker", "[a program](commands-of-steps.md#warm-workers) that a pilot starts once and that begins each job: `python MODULES`, `R PACKAGES` or your own", "shell", scalarOf(parseWorker, func(s *Step) *string { return &s.Runs.Worker })},
	{"shell", "[what runs the command](commands-of-steps.md)", "shell", nil},
}

var splitKeys = []fileKey[*Step]{
	{"records", "records of one job", "whole", (*parser).splitRecords},
	{"of", "what a record is: `lines`, `fastq` or `bytes=N`", `{ "type": "string", "pattern": "^(lines|fastq|bytes=.+)$|\\$\\{" }`, (*parser).splitUnit},
	{"count", "a command that prints the number of records", textOnly, (*parser).splitCount},
}

// Resources that a site names have other keys.
var needsKeys = []fileKey[*Step]{
	{"cpus", "processors, also fractions such as 0.5", "text", scalarOf(quantity.MilliCPUs, func(s *Step) *int64 { return &s.Needs.Resources.MilliCPUs })},
	{"memory", "also a limit", "size", scalarOf(quantity.Room, func(s *Step) *int64 { return &s.Needs.Resources.Memory })},
	{"disk", "space for what a job writes", "size", scalarOf(quantity.Room, func(s *Step) *int64 { return &s.Needs.Resources.Disk })},
	{"gpu", "GPUs that [no other job has](where-jobs-run.md#gpus), or 0.5 of one: a number, or " +
		"`{count: 1, memory: 20GB}` of each", `{
          "anyOf": [
            { "type": "integer", "minimum": 0 },
            { "type": "number", "minimum": 0.001, "exclusiveMaximum": 1 },
            { "type": "string", "pattern": "\\\\$\\\\{" },
            { "type": "object", "additionalProperties": false, "properties": { "count": { "anyOf": [{ "type": "integer", "minimum": 1 }, { "type": "number", "minimum": 0.001, "exclusiveMaximum": 1 }, { "type": "string", "pattern": "\\\\$\\\\{" }] }, "memory": { "type": "string" } } }
          ]
        }`, (*parser).gpus},
	{"time", "wall clock of the command, also a limit", "duration", scalarOf(quantity.Duration, func(s *Step) *time.Duration { return &s.Needs.Resources.Time })},
}

var retryKeys = []fileKey[*Step]{
	{"attempts", "attempts in all", "whole", (*parser).attempts},
	{"backoff", "before the second attempt; doubles each time", "duration", scalarOf(quantity.Duration, func(s *Step) *time.Duration { return &s.Needs.Retry.Backoff })},
	{"memory_factor", "memory grows by this after an attempt that ran out of it", "text", scalarOf(parseFactor, func(s *Step) *float64 { return &s.Needs.Retry.MemoryFactor })},
	{"exit_codes", "retry only these; default: any", "texts", (*parser).exitCodes},
}
