package wfformat

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"
)

// Run is a finished run, as WfFormat tells of it.
type Run struct {
	Name     string
	Created  time.Time // when the record is made
	Version  string    // of Fairway
	Start    time.Time // of the run
	End      time.Time
	Tasks    []RunTask
	Machines []RunMachine
}

// RunTask is a committed job with the attempt that was committed.
type RunTask struct {
	Name       string // unique
	Program    string
	Arguments  []string
	Reads      []RunFile
	Writes     []RunFile
	Start      time.Time // of the command
	End        time.Time
	CPU        time.Duration
	Cores      float64
	Memory     int64 // most that it used, bytes
	BytesRead  int64
	BytesWrote int64
	Priority   int
	Machine    string // node name
}

// RunFile is a version of a file.
type RunFile struct {
	LFN     string
	Version uint32
	Size    int64
}

// RunMachine is a node that ran tasks.
type RunMachine struct {
	Name   string
	Cores  int
	Memory int64 // bytes
}

// Export writes a run in WfFormat of the given version, "1.5" or "1.6".
// Tasks stand in the order given; parents are those who wrote what a task
// read. Instants and durations are exact to the microsecond, and rounded down
// alike, so that a task which began after another ended still does so in the
// record.
func Export(out io.Writer, run Run, version string) error {
	if version != "1.5" && version != "1.6" {
		return fmt.Errorf("export: WfFormat %q is unknown; use 1.5 or 1.6", version)
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(newExport(run).record(version)); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	return nil
}

type export struct {
	run      Run
	versions map[string]map[uint32]bool // of each file, those that tasks used
	writer   map[RunFile]int            // task by file, sizes left out
	parents  [][]int
	children [][]int
}

func newExport(run Run) *export {
	e := &export{
		run: run, versions: map[string]map[uint32]bool{}, writer: map[RunFile]int{},
		parents: make([][]int, len(run.Tasks)), children: make([][]int, len(run.Tasks)),
	}
	for i, task := range run.Tasks {
		for _, f := range append(slices.Clone(task.Reads), task.Writes...) {
			if e.versions[f.LFN] == nil {
				e.versions[f.LFN] = map[uint32]bool{}
			}
			e.versions[f.LFN][f.Version] = true
		}
		for _, f := range task.Writes {
			e.writer[f.unsized()] = i
		}
	}
	for i, task := range run.Tasks {
		for _, f := range task.Reads {
			if w, ok := e.writer[f.unsized()]; ok && w != i && !slices.Contains(e.parents[i], w) {
				e.parents[i] = append(e.parents[i], w)
				e.children[w] = append(e.children[w], i)
			}
		}
	}
	return e
}

func (f RunFile) unsized() RunFile { return RunFile{LFN: f.LFN, Version: f.Version} }

// id names a version of a file: by its LFN alone where there is only one.
func (e *export) id(f RunFile) string {
	if len(e.versions[f.LFN]) == 1 {
		return f.LFN
	}
	return fmt.Sprintf("%s;%d", f.LFN, f.Version)
}

func (e *export) ids(files []RunFile) []string {
	ids := make([]string, len(files))
	for i, f := range files {
		ids[i] = e.id(f)
	}
	return ids
}

func (e *export) names(tasks []int) []string {
	names := make([]string, len(tasks))
	for i, t := range tasks {
		names[i] = e.run.Tasks[t].Name
	}
	return names
}

func (e *export) record(version string) *exportRecord {
	r := &exportRecord{
		Name: e.run.Name, CreatedAt: instant(e.run.Created),
		SchemaVersion: version, Runtime: systemInfo{"Fairway", e.run.Version},
	}
	r.Workflow.Specification.Files = e.files()
	r.Workflow.Specification.Tasks = []taskRecord{}
	r.Workflow.Execution.Tasks = []executedTask{}
	for i, task := range e.run.Tasks {
		r.Workflow.Specification.Tasks = append(r.Workflow.Specification.Tasks, taskRecord{
			Name: task.Name, ID: task.Name, Parents: e.names(e.parents[i]), Children: e.names(e.children[i]),
			Inputs: e.ids(task.Reads), Outputs: e.ids(task.Writes),
		})
		r.Workflow.Execution.Tasks = append(r.Workflow.Execution.Tasks, executed(task))
	}
	r.Workflow.Execution.Makespan = seconds(e.run.Start, e.run.End)
	r.Workflow.Execution.ExecutedAt = instant(e.run.Start)
	r.Workflow.Execution.Machines = machines(e.run.Machines)
	return r
}

// files lists every file once, in the order of first use.
func (e *export) files() []exportedFile {
	files := []exportedFile{}
	at := map[RunFile]int{}
	for _, task := range e.run.Tasks {
		for _, f := range append(slices.Clone(task.Reads), task.Writes...) {
			i, ok := at[f.unsized()]
			if !ok {
				i = len(files)
				at[f.unsized()] = i
				files = append(files, exportedFile{ID: e.id(f)})
			}
			files[i].Size = max(files[i].Size, f.Size)
		}
	}
	return files
}

func executed(task RunTask) executedTask {
	x := executedTask{
		ID: task.Name, Runtime: seconds(task.Start, task.End), ExecutedAt: instant(task.Start),
		Command: exportedCommand{task.Program, task.Arguments}, Cores: task.Cores,
		BytesRead: task.BytesRead, BytesWrote: task.BytesWrote, Memory: task.Memory, Priority: task.Priority,
	}
	if task.Machine != "" {
		x.Machines = []string{task.Machine}
	}
	if wall := task.End.Sub(task.Start); wall > 0 && task.CPU > 0 {
		x.AvgCPU = 100 * float64(task.CPU) / float64(wall)
	}
	return x
}

func machines(all []RunMachine) []exportedMachine {
	var list []exportedMachine
	for _, m := range all {
		x := exportedMachine{Name: m.Name, Memory: m.Memory}
		if m.Cores > 0 {
			x.CPU = &exportedCPU{m.Cores}
		}
		list = append(list, x)
	}
	return list
}

func instant(t time.Time) string {
	return t.UTC().Truncate(time.Microsecond).Format("2006-01-02T15:04:05.000000Z07:00")
}

func seconds(from, to time.Time) json.Number {
	d := max(0, to.UTC().Truncate(time.Microsecond).Sub(from.UTC().Truncate(time.Microsecond)))
	return json.Number(fmt.Sprintf("%d.%06d", d/time.Second, d%time.Second/time.Microsecond))
}

type exportRecord struct {
	Name          string     `json:"name"`
	CreatedAt     string     `json:"createdAt"`
	SchemaVersion string     `json:"schemaVersion"`
	Runtime       systemInfo `json:"runtimeSystem"`
	Workflow      struct {
		Specification struct {
			Tasks []taskRecord   `json:"tasks"`
			Files []exportedFile `json:"files"`
		} `json:"specification"`
		Execution struct {
			Makespan   json.Number       `json:"makespanInSeconds"`
			ExecutedAt string            `json:"executedAt"`
			Tasks      []executedTask    `json:"tasks"`
			Machines   []exportedMachine `json:"machines,omitempty"`
		} `json:"execution"`
	} `json:"workflow"`
}

type exportedFile struct {
	ID   string `json:"id"`
	Size int64  `json:"sizeInBytes"`
}

type executedTask struct {
	ID         string          `json:"id"`
	Runtime    json.Number     `json:"runtimeInSeconds"`
	ExecutedAt string          `json:"executedAt"`
	Command    exportedCommand `json:"command,omitzero"`
	Cores      float64         `json:"coreCount,omitempty"`
	AvgCPU     float64         `json:"avgCPU,omitempty"`
	BytesRead  int64           `json:"readBytes,omitempty"`
	BytesWrote int64           `json:"writtenBytes,omitempty"`
	Memory     int64           `json:"memoryInBytes,omitempty"`
	Priority   int             `json:"priority,omitempty"`
	Machines   []string        `json:"machines,omitempty"`
}

type exportedCommand struct {
	Program   string   `json:"program,omitempty"`
	Arguments []string `json:"arguments,omitempty"`
}

// IsZero lets a job without a program leave the command out.
func (c exportedCommand) IsZero() bool { return c.Program == "" && len(c.Arguments) == 0 }

type exportedMachine struct {
	Name   string       `json:"nodeName"`
	Memory int64        `json:"memoryInBytes,omitempty"`
	CPU    *exportedCPU `json:"cpu,omitempty"`
}

type exportedCPU struct {
	Cores int `json:"coreCount"`
}
