package look

import (
	"context"
	"fmt"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/logical"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// standardOutput stands for it in the place of a file.
const standardOutput = "-"

// GetCommand is `fairway get`.
func (c *Commands) GetCommand() *cobra.Command {
	var number uint32
	command := &cobra.Command{
		Use:   "get NAME|PATTERN [DESTINATION]",
		Short: "Fetch files of the run from where they are stored",
		Long: `Fetch a file of this folder's workflow by its logical name, from where it is
stored. DESTINATION is a new file, a folder that exists (default: this one), or -
for standard output. The copy appears when it is complete and has the recorded
checksum, and replaces nothing; with -, get fails at the end if the checksum is
wrong. A folder (its name ends in a slash) comes as a ZIP file.

A PATTERN with a placeholder or a wildcard stands for all files that match. They keep
their names below DESTINATION, which is made if need be. A file that is there already
is left alone, so a call that was cut short may be repeated.

From a server that is reached over the network, files come through the server.`,
		Example: `  fairway get merged/all.bam
  fairway get 'counts/{sample}.txt' /tmp/counts
  fairway get table.txt --version 2 - | head
  fairway get report/ /tmp/report.zip`,
		Args: console.Takes(1, 2, "file"),
		RunE: func(command *cobra.Command, arguments []string) error {
			var version *uint32
			if command.Flags().Changed("version") {
				version = &number
			}
			destination := strings.Join(arguments[1:], "")
			if destination == standardOutput && c.JSON {
				return console.Fail(console.ExitUsage, "name a file to write",
					"with --json, standard output holds one JSON object and nothing else")
			}
			if isPattern(arguments[0]) {
				return c.getMatching(command.Context(), arguments[0], version, destination)
			}
			f, err := c.getFile(command.Context(), arguments[0], version, destination)
			if err != nil || destination == standardOutput {
				return err
			}
			return c.Answer(f, func() { c.printFetched(f) })
		},
	}
	command.Flags().Uint32Var(&number, "version", 0, "number of a version (files lists them; default: the newest)")
	return command
}

func (c *Commands) getFile(ctx context.Context, lfn string, number *uint32, destination string) (*Fetched, error) {
	if c.Service != "" && !console.IsFolder(c.Service) {
		return c.getFar(ctx, lfn, number, destination)
	}
	return c.getStored(ctx, lfn, number, destination)
}

func (c *Commands) printFetched(f *Fetched) {
	fmt.Fprintf(c.Out, "%s: version %d of %s, %s\n", f.Destination, f.Version, f.LFN, quantity.Bytes(f.Size))
}

// isPattern reports whether a name stands for several files. Names of files have no such signs, but
// where their workflow has written them so: then the name itself is asked for first.
func isPattern(name string) bool { return strings.ContainsAny(name, "{}*?") }

// FetchedObject is what --json prints of a pattern.
// Fetched is a file that was brought.
type FetchedObject struct {
	Files []*Fetched `json:"files"`
	There []string   `json:"there"` // names of files that were at the destination already
	Left  []string   `json:"left"`  // names of files that are not stored
}

func (c *Commands) getMatching(ctx context.Context, pattern string, number *uint32, destination string) error {
	if number != nil || destination == standardOutput {
		return console.Fail(console.ExitUsage, "name one file", "--version and - are for one file, and %s is a pattern",
			pattern)
	}
	names, left, err := c.storedNames(ctx, pattern)
	if err != nil {
		return err
	}
	got := FetchedObject{[]*Fetched{}, []string{}, left}
	for _, lfn := range names {
		to := filepath.Join(destination, filepath.FromSlash(path.Dir(logical.Path(lfn))))
		if !filepath.IsLocal(filepath.FromSlash(logical.Path(lfn))) {
			return console.Fail(console.ExitFailed, "", "%q is no name for a file below a folder", lfn)
		}
		if err := os.MkdirAll(to, 0o777); err != nil {
			return fmt.Errorf("making a folder for %s: %w", lfn, err)
		}
		to = destinationOf(lfn, to)
		if _, err := os.Lstat(to); err == nil {
			got.There = append(got.There, lfn)
			continue
		}
		f, err := c.getFile(ctx, lfn, nil, to)
		if err != nil {
			return err
		}
		got.Files = append(got.Files, f)
	}
	_ = c.Answer(got, func() {
		for _, f := range got.Files {
			c.printFetched(f)
		}
		if n := int64(len(got.There)); n > 0 {
			fmt.Fprintf(c.Err, "fairway: %s left alone, which were there already\n", quantity.Count(n, "file"))
		}
		if n := int64(len(left)); n > 0 {
			fmt.Fprintf(c.Err, "fairway: %s left out, which are not stored: `fairway files '%s'` says why\n",
				quantity.Count(n, "file"), pattern)
		}
	})
	return nil
}

func (c *Commands) storedNames(ctx context.Context, pattern string) (names, left []string, err error) {
	left = []string{}
	err = c.Ask(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		answer, err := client.ListFiles(ctx, &wire.ListFilesRequest{Pattern: pattern, Limit: math.MaxInt32})
		names, left = nil, []string{}
		for _, file := range answer.GetFiles() {
			stored := slices.ContainsFunc(file.GetVersions(), func(v *wire.FileVersion) bool { return v.Newest && v.Pfn != "" })
			if stored {
				names = append(names, file.GetLfn())
			} else {
				left = append(left, file.GetLfn())
			}
		}
		return err
	})
	if err == nil && len(names)+len(left) == 0 {
		err = console.Fail(console.ExitNotFound, "`fairway files` lists them", "there is no file that matches %q", pattern)
	}
	return names, left, err
}

// Fetched is a file that was brought.
type Fetched struct {
	LFN         string `json:"lfn"`
	Version     uint32 `json:"version"`
	Size        int64  `json:"size"`
	Adler32     string `json:"adler32"` // that was checked; empty where none was recorded
	Destination string `json:"destination"`
}

// destinationOf is the path for a file that is fetched: in a folder that exists, under the
// last part of its own name.
func destinationOf(lfn, destination string) string {
	name := path.Base(logical.Path(lfn))
	if logical.IsFolder(lfn) {
		name += logical.FolderSuffix
	}
	if destination == "" {
		return name
	}
	if info, err := os.Stat(destination); err == nil && info.IsDir() || strings.HasSuffix(destination, "/") {
		return filepath.Join(destination, name)
	}
	return destination
}

func taken(destination string) error {
	return console.Fail(console.ExitUsage, "name another DESTINATION, or remove it first",
		"%s exists already, and nothing is overwritten", destination)
}

func (c *Commands) storedVersion(ctx context.Context, lfn string, number *uint32) (v *wire.FileVersion, err error) {
	var file *wire.FileHistory
	err = c.Ask(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		answer, err := client.ListFiles(ctx, &wire.ListFilesRequest{Pattern: lfn, Limit: 1})
		if files := answer.GetFiles(); len(files) == 1 && files[0].Lfn == lfn {
			file = files[0]
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	if file == nil {
		return nil, console.Fail(console.ExitNotFound, "`fairway files` lists them", "there is no file %q", lfn)
	}
	at := slices.IndexFunc(file.Versions, func(v *wire.FileVersion) bool {
		return number == nil && v.Newest || number != nil && v.Version == *number
	})
	switch {
	case at < 0 && number != nil:
		return nil, console.Fail(console.ExitNotFound, "`fairway files` lists them",
			"there is no version %d of %s", *number, lfn)
	case at < 0:
		at = len(file.Versions) - 1
	}
	if v = file.Versions[at]; v.Pfn != "" {
		return v, nil
	}
	return nil, notStored(lfn, v)
}

func notStored(lfn string, v *wire.FileVersion) error {
	text, _ := whereText(v)
	if len(v.Hosts) > 0 {
		text += " on " + fewOf(v.Hosts, len(v.Hosts))
	}
	job := v.GetWriter()
	hint := remakeHint(v)
	switch {
	case job.GetState() != taskqueue.Done.String():
		hint = fmt.Sprintf("`fairway explain %s` says how its job stands", job.GetName())
	case v.CachesOnly:
		hint = fmt.Sprintf("take `storage: cache` out of its step, and `fairway run --force %s` stores it", job.GetName())
	case !v.Newest:
		hint = "leave --version out to get the newest one"
	}
	return console.Fail(console.ExitNotFound, hint, "version %d of %s is not stored: %s", v.Version, lfn, text)
}

func remakeHint(v *wire.FileVersion) string {
	switch {
	case v.Writer == nil:
		return ""
	case v.Temporary:
		return fmt.Sprintf("write `storage: element` in its step, and `fairway run --force %s` makes it again and keeps it",
			v.Writer.Name)
	}
	return fmt.Sprintf("`fairway run --force %s` makes it again", v.Writer.Name)
}
