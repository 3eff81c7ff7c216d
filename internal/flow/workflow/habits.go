package workflow

// What people write who come from other workflow systems, and what to write
// here. The keys are words that no key of Fairway is, in the same place.

var workflowHabits = map[string]string{
	"name":        "write `workflow: NAME`",
	"description": "write `about: TEXT`",
	"params":      "write `parameters:`",
	"config":      "write `parameters:`",
	"configfile":  "write `parameters:`, and give values with --set",
	"input":       "write `inputs:`",
	"files":       "write `inputs: {NAME: {files: PATTERN}}`",
	"rules":       "write `steps:`",
	"rule":        "write `steps:`",
	"process":     "write `steps:`",
	"processes":   "write `steps:`",
	"tasks":       "write `steps:`",
	"jobs":        "write `steps:`; a step makes a job for each file",
	"executable":  "write `shell:`",
	"env":         habitVariables, "envvars": habitVariables,
}

var inputHabits = map[string]string{
	"file":    "write `files: PATTERN`",
	"path":    "write `files: PATTERN`",
	"paths":   "write `files: [PATTERN, ...]`",
	"glob":    "write `files: PATTERN`; * and ? work there",
	"pattern": "write `files: PATTERN`",
	"url":     "write `url_list: FILE`, a file with one URL a line",
	"urls":    "write `url_list: FILE`, a file with one URL a line",
	"name":    "`as:` says by which names steps know the files, as in `as: books/{book}`",
	"stream":  habitStream, "streaming": habitStream, "retrieve": habitStream, "remote": habitStream,
	"stageInMode": habitAccess,
}

const (
	habitCPUs      = "write `needs: {cpus: 4}`; a command has the number as $FAIRWAY_CPUS"
	habitMemory    = "write `needs: {memory: 2GB}`"
	habitDisk      = "write `needs: {disk: 10GB}`"
	habitTime      = "write `needs: {time: 2h}`"
	habitRetry     = "write `retry: {attempts: 3}`, which counts the first one"
	habitTools     = "name the programs under tools; they must be installed"
	habitAccess    = "write `access: link`, `access: copy` or `access: stream`"
	habitImage     = "write `container:` with a file that has the image"
	habitStream    = "write `access: stream`"
	habitVariables = "write `variables: [NAME, NAME=value]`"
	habitOrder     = "name the files under reads: a step waits for what it reads"
)

var stepHabits = map[string]string{
	"threads": habitCPUs, "cpus": habitCPUs, "cpu": habitCPUs, "cores": habitCPUs,
	"mem": habitMemory, "memory": habitMemory, "mem_mb": habitMemory, "ram": habitMemory,
	"disk": habitDisk, "disk_mb": habitDisk,
	"runtime": habitTime, "walltime": habitTime, "timeout": habitTime, "time": habitTime,
	"gpu": "write `needs: {gpu: 1}`", "gpus": "write `needs: {gpu: 1}`",
	"resources": "write `needs: {cpus: 4, memory: 2GB, time: 2h}`",
	"retries":   habitRetry, "maxRetries": habitRetry, "max_retries": habitRetry, "attempts": habitRetry,
	"errorStrategy": habitRetry,
	"input":         "write `each: PATTERN` for one job for each file, or `reads: NAME`",
	"inputs":        "write `each: PATTERN` for one job for each file, or `reads: NAME`",
	"output":        "write `writes: NAME`", "outputs": "write `writes: NAME`",
	"run": "write `command:`", "cmd": "write `command:`", "exec": "write `command:`", "commands": "write `command:`",
	"params":     "write `parameters:` beside `steps:`; commands have them as variables",
	"parameters": "write them beside `steps:`; commands have them as variables",
	"publishDir": "write `publish: true`; results are in results/",
	"conda":      habitTools, "singularity": habitImage, "docker": habitImage,
	"env": habitVariables, "envvars": habitVariables, "secret": habitVariables, "secrets": habitVariables,
	"module": habitTools, "envmodules": habitTools,
	"after": habitOrder, "depends": habitOrder, "depends_on": habitOrder, "dependencies": habitOrder,
	"requires": habitOrder,
	"foreach":  "write `each: PATTERN`", "for_each": "write `each: PATTERN`", "scatter": "write `each: PATTERN`",
	"gather": "write `merge: PATTERN`", "collect": "write `merge: PATTERN`", "aggregate": "write `merge: PATTERN`",
	"group_by": "write `by: [NAME]` beside merge", "groupTuple": "write `by: [NAME]` beside merge",
	"repeat": "write `times: NUMBER`",
	"stream": habitStream, "streaming": habitStream, "retrieve": habitStream, "remote": habitStream,
	"stageInMode": habitAccess, "should_transfer_files": habitAccess,
	"transfer_input_files": "name the files under each or reads; `access:` says how the command gets them",
}

var retryHabits = map[string]string{
	"times": "write `attempts: 3`, which counts the first one", "count": "write `attempts: 3`, which counts the first one",
	"max": "write `attempts: 3`, which counts the first one", "retries": "write `attempts: 3`, which counts the first one",
	"delay": "write `backoff: 10s`", "wait": "write `backoff: 10s`", "codes": "write `exit_codes: [75]`",
}

// needsHabits are keys that would otherwise count as resources of a site.
var needsHabits = map[string]string{
	"threads": "cpus", "cores": "cpus", "cpu": "cpus", "ncpus": "cpus", "processors": "cpus",
	"mem": "memory", "mem_mb": "memory", "ram": "memory", "disk_mb": "disk",
	"runtime": "time", "walltime": "time", "timeout": "time",
}
