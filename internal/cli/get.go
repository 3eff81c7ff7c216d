package cli

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/dispatch"
	"fairway/internal/logical"
	"fairway/internal/wire"
)

// standardOutput stands for it in the place of a file.
const standardOutput = "-"

func (c *console) getCommand() *cobra.Command {
	var number uint32
	command := &cobra.Command{
		Use:   "get NAME [DESTINATION]",
		Short: "Fetch a file of the run from where it is stored",
		Long: `Fetch a file of this folder's workflow by its logical name, from where it is
stored. DESTINATION is a new file, a folder that exists (default: this one), or -
for standard output. The copy appears when it is complete and has the recorded
checksum, and replaces nothing; with -, get fails at the end if the checksum is
wrong. A folder (its name ends in a slash) comes as a ZIP file.
From a server that is reached over the network, files come through the server.`,
		Example: `  fairway get merged/all.bam
  fairway get table.txt --version 2 - | head
  fairway get report/ /tmp/report.zip`,
		Args: takes(1, 2, "file"),
		RunE: func(command *cobra.Command, arguments []string) error {
			var version *uint32
			if command.Flags().Changed("version") {
				version = &number
			}
			destination := strings.Join(arguments[1:], "")
			if destination == standardOutput && c.json {
				return fail(exitUsage, "name a file to write",
					"with --json, standard output holds one JSON object and nothing else")
			}
			if c.service != "" && !isFolder(c.service) {
				return c.getFar(command.Context(), arguments[0], version, destination)
			}
			return c.getStored(command.Context(), arguments[0], version, destination)
		},
	}
	command.Flags().Uint32Var(&number, "version", 0, "number of a version (files lists them; default: the newest)")
	return command
}

type fetched struct {
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
	return fail(exitUsage, "name another DESTINATION, or remove it first",
		"%s exists already, and nothing is overwritten", destination)
}

// storedVersion is a version that is stored: the newest one unless a number is given.
func (c *console) storedVersion(ctx context.Context, lfn string, number *uint32) (v *wire.FileVersion, err error) {
	var file *wire.FileHistory
	err = c.ask(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
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
		return nil, fail(exitNotFound, "`fairway files` lists them", "there is no file %q", lfn)
	}
	at := slices.IndexFunc(file.Versions, func(v *wire.FileVersion) bool {
		return number == nil && v.Newest || number != nil && v.Version == *number
	})
	switch {
	case at < 0 && number != nil:
		return nil, fail(exitNotFound, "`fairway files` lists them", "there is no version %d of %s", *number, lfn)
	case at < 0:
		at = len(file.Versions) - 1
	}
	if v = file.Versions[at]; v.Pfn != "" {
		return v, nil
	}
	return nil, notStored(lfn, v)
}

// notStored says why a version cannot be fetched, and what makes it again.
func notStored(lfn string, v *wire.FileVersion) error {
	text, _ := whereText(v)
	if len(v.Hosts) > 0 {
		text += " on " + fewOf(v.Hosts, len(v.Hosts))
	}
	job := v.GetWriter()
	hint := remakeHint(v)
	switch {
	case job.GetState() != dispatch.Done.String():
		hint = fmt.Sprintf("`fairway explain %s` says how its job stands", job.GetName())
	case v.CachesOnly:
		hint = fmt.Sprintf("take `storage: cache` out of its step, and `fairway run --force %s` stores it", job.GetName())
	case !v.Newest:
		hint = "leave --version out to get the newest one"
	}
	return fail(exitNotFound, hint, "version %d of %s is not stored: %s", v.Version, lfn, text)
}

// remakeHint is the advice that has a file made once more, and kept.
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
