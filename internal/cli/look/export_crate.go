package look

import (
	"archive/zip"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/cli/console"
	"fairway/internal/flow/workflow"
	"fairway/internal/quantity"
	"fairway/internal/rocrate"
	"fairway/internal/wfformat"
	"fairway/internal/wire"
)

type crateOptions struct{ workflow, agent, license string }

func (o *crateOptions) refuse(format, out string) error {
	if format != formatCrate {
		if *o != (crateOptions{}) {
			return console.Fail(console.ExitUsage, "add --format ro-crate",
				"--workflow, --agent and --license are of an RO-Crate")
		}
		return nil
	}
	if out == standardOutput {
		return console.Fail(console.ExitUsage, "name a new folder, or a ZIP file: -o crate.zip",
			"an RO-Crate has several files")
	}
	if _, err := os.Lstat(out); err == nil {
		return console.Fail(console.ExitUsage, "name another one with -o, or remove it", "there is a %s already", out)
	}
	return nil
}

func (c *Commands) exportCrate(ctx context.Context, client wire.WorkflowClient, out string, o crateOptions) error {
	run := rocrate.Run{Made: time.Now(), Version: console.ProgramVersion(), Agent: o.agent, License: o.license}
	file, err := c.aboutCrate(ctx, client, &run, o.workflow)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return console.Fail(console.ExitBadFile, "name the workflow file with --workflow", "cannot read the workflow: %w",
			err)
	}
	work, err := wfformat.ParseEither(file, text, workflow.Scales{})
	if err != nil {
		return &console.Failure{Code: console.ExitBadFile, Err: err}
	}
	run.About, run.Steps, run.FileSize = work.About, work.StepNames(), int64(len(text))
	run.Tools = toolsOf(work)
	run.FileSum = fmt.Sprintf("%x", sha256.Sum256(text))
	if work.Name != run.Workflow {
		return console.Fail(console.ExitBadFile, "name the file of the run with --workflow",
			"%s is the workflow %s, and the run is one of %s", file, work.Name, run.Workflow)
	}
	if err := gatherCrate(ctx, client, &run); err != nil {
		return err
	}
	for i := range run.Jobs {
		if !slices.Contains(run.Steps, run.Jobs[i].Step) {
			return console.Fail(console.ExitBadFile, "name the file as it was with --workflow",
				"%s was changed after the run: it has no step %s", file, run.Jobs[i].Step)
		}
	}
	var metadata bytes.Buffer
	if err := rocrate.Write(&metadata, &run); err != nil {
		return err
	}
	files := []crateFile{{rocrate.MetadataFile, metadata.Bytes()}, {rocrate.WorkflowFile, text}}
	if strings.HasSuffix(out, ".zip") {
		return WriteNew(out, func(w io.Writer) error { return packZIP(w, files) })
	}
	return writeFolder(out, files)
}

func toolsOf(work *workflow.Workflow) map[string][]string {
	tools := map[string][]string{}
	for _, demand := range work.Demands() {
		for _, tool := range demand.Tools {
			if _, memory := quantity.ParseGPUMemory(tool); !memory {
				tools[demand.Step] = append(tools[demand.Step], tool)
			}
		}
	}
	return tools
}

// aboutCrate asks for what is known of the run, and finds its workflow file unless one is named.
func (c *Commands) aboutCrate(
	ctx context.Context, client wire.WorkflowClient, run *rocrate.Run, file string,
) (string, error) {
	report, err := console.ProgressNow(ctx, client)
	if err != nil {
		return "", err
	}
	run.Workflow, run.Number = report.GetWorkflow(), max(1, report.GetRun())
	run.Ended, run.Succeeded = report.GetEnded(), report.GetSucceeded()
	if c.Service == "" {
		folder, err := c.WorkflowFolder()
		if err != nil {
			return "", err
		}
		run.Agent = cmp.Or(run.Agent, ownerOf(filepath.Join(folder, console.StateFolder)))
		return cmp.Or(file, filepath.Join(folder, console.DefaultFile)), nil
	}
	list, err := client.ListRuns(ctx, &wire.ListRunsRequest{})
	if err != nil && connect.CodeOf(err) != connect.CodeFailedPrecondition {
		return "", err
	}
	for _, r := range list.GetRuns() {
		if r.GetRun() == run.Number {
			run.Agent, run.Parameters = cmp.Or(run.Agent, r.GetUser()), r.GetParameters()
			return cmp.Or(file, filepath.Join(r.GetFolder(), filepath.Base(r.GetFile()))), nil
		}
	}
	return cmp.Or(file, console.DefaultFile), nil
}

// ownerOf is the name of the user whose file it is; empty: it is not known.
func ownerOf(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	owner, err := user.LookupId(strconv.FormatUint(uint64(stat.Uid), 10))
	if err != nil {
		return ""
	}
	return owner.Username
}

func gatherCrate(ctx context.Context, client wire.WorkflowClient, run *rocrate.Run) error {
	request := &wire.ListJobsRequest{States: []string{"done", "failed"}, Limit: exportPage}
	for summary, err := range console.AllJobs(ctx, client, request) {
		if err != nil {
			return err
		}
		job, err := client.ShowJob(ctx, &wire.ShowJobRequest{Job: summary.GetName()})
		if err != nil {
			return err
		}
		run.Jobs = append(run.Jobs, crateJob(job))
	}
	return nil
}

func crateJob(detail *wire.JobDetail) rocrate.Job {
	summary := detail.GetSummary()
	job := rocrate.Job{
		Name: summary.GetName(), Step: summary.GetStep(), Failed: summary.GetState() == "failed",
		Command: strings.TrimSpace(detail.GetPayload().GetShell()), Earlier: summary.GetReused(), Host: summary.GetHost(),
	}
	job.Image, job.Environment = detail.GetPayload().GetContainer().GetImage(), detail.GetPayload().GetEnvironmentFolder()
	if argv := detail.GetPayload().GetArgv(); len(argv) > 0 {
		job.Command = strings.Join(argv, " ")
	}
	attempt := committed(detail)
	if job.Failed {
		job.Error = summary.GetReason()
		if n := len(detail.GetAttempts()); n > 0 {
			attempt = detail.GetAttempts()[n-1]
		}
	}
	usage := attempt.GetResult().GetUsage()
	job.Host, job.Earlier = cmp.Or(attempt.GetHost(), job.Host), job.Earlier || attempt.GetEarlier()
	job.CPU, job.Memory = usage.GetCpu().AsDuration(), usage.GetMaxRssBytes()
	if set(usage.GetStart()) {
		job.Start = usage.GetStart().AsTime()
	}
	if set(usage.GetEnd()) {
		job.End = usage.GetEnd().AsTime()
	}
	job.Reads = crateFiles(detail.GetReads(), nil)
	if !job.Failed {
		job.Writes = crateFiles(detail.GetWrites(), attempt.GetResult().GetOutputs())
	}
	return job
}

func crateFiles(files []*wire.FileDetail, written []*wire.WrittenFile) []rocrate.File {
	var list []rocrate.File
	for _, f := range files {
		if f.GetPattern() {
			continue
		}
		file := rocrate.File{
			LFN: f.GetLfn(), Version: f.GetVersion(), Size: f.GetSize(), Place: f.GetPfn(),
			Made: f.GetWriter() != 0 || written != nil, Published: f.GetPublished(),
		}
		for _, w := range written {
			if w.GetLfn() != f.GetLfn() {
				continue
			}
			file.Size = w.GetSize()
			if w.GetAdler32() != 0 {
				file.Adler32 = fmt.Sprintf("%08x", w.GetAdler32())
			}
			file.BLAKE3 = hex.EncodeToString(w.GetBlake3())
		}
		list = append(list, file)
	}
	return list
}

type crateFile struct {
	name string
	text []byte
}

// writeFolder makes a folder with files, which appears when it is complete.
func writeFolder(path string, files []crateFile) (err error) {
	made, err := os.MkdirTemp(filepath.Dir(filepath.Clean(path)), ".fairway-new-")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(made))
		}
	}()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(made, f.name), f.text, 0o666); err != nil {
			return err
		}
	}
	if err := os.Chmod(made, 0o755); err != nil {
		return err
	}
	return os.Rename(made, filepath.Clean(path))
}

// WriteNew makes a file, which appears when it is complete, and replaces none (fs.ErrExist).
func WriteNew(path string, write func(io.Writer) error) (err error) {
	out, err := os.CreateTemp(filepath.Dir(path), ".fairway-new-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(out.Name())) }() // its other name stays
	if err := errors.Join(write(out), out.Chmod(0o644), out.Close()); err != nil {
		return err
	}
	return os.Link(out.Name(), path)
}

func packZIP(out io.Writer, files []crateFile) error {
	w := zip.NewWriter(out)
	for _, f := range files {
		part, err := w.Create(f.name)
		if err != nil {
			return err
		}
		if _, err := part.Write(f.text); err != nil {
			return err
		}
	}
	return w.Close()
}
