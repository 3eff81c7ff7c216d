package look

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

const filesListed = 100

// FilesCommand is `fairway files`.
func (c *Commands) FilesCommand() *cobra.Command {
	limit := int32(filesListed)
	command := &cobra.Command{
		Use:   "files [NAME|PATTERN]",
		Short: "Show where files are, and which jobs need them",
		Long: `Tell where the files of this folder's workflow are, by their logical names or a
pattern of them. A line is one version of a file: where it is stored, or why it is
not; CACHES: the hosts that have it in a cache, known while a server runs; NEEDED
BY: the jobs that read it and have not ended.`,
		Example: `  fairway files
  fairway files 'aligned/{sample}.bam'
  fairway files genome.fa --json`,
		Args: console.Takes(0, 1, "pattern"),
		RunE: func(command *cobra.Command, arguments []string) error {
			if limit <= 0 {
				return console.Fail(console.ExitUsage, "", "--limit is a number above 0, not %d", limit)
			}
			return c.listFiles(command.Context(), &wire.ListFilesRequest{Pattern: strings.Join(arguments, ""), Limit: limit})
		},
	}
	command.Flags().Int32Var(&limit, "limit", limit, "list at most this many files")
	return command
}

func (c *Commands) listFiles(ctx context.Context, request *wire.ListFilesRequest) error {
	return c.AskAbout(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		answer, err := client.ListFiles(ctx, request)
		if err != nil {
			return err
		}
		shown, err := c.ShownPlaces()
		if err != nil {
			return err
		}
		for _, file := range answer.Files {
			for _, v := range file.Versions {
				v.Pfn = shown(v.Pfn)
			}
		}
		return c.Answer(answer, func() {
			c.printHistories(answer.Files)
			if answer.More {
				fmt.Fprintf(c.Err, "%d of %d files; more: --limit; fewer: a pattern\n", len(answer.Files), answer.Total)
			}
		})
	})
}

func (c *Commands) printHistories(files []*wire.FileHistory) {
	if len(files) == 0 {
		fmt.Fprintln(c.Out, "no such files")
		return
	}
	rows := [][]screen.Cell{screen.Head("FILE", "VERSION", "SIZE", "CACHES", "NEEDED BY", "WHERE")}
	for _, file := range files {
		for _, v := range file.Versions {
			size, readers := "", make([]string, len(v.Readers))
			if v.Size > 0 || v.State == "present" {
				size = quantity.Bytes(v.Size)
			}
			for i, job := range v.Readers {
				readers[i] = job.Name
			}
			where, colour := whereText(v)
			rows = append(rows, []screen.Cell{
				{file.Lfn, ""},
				{strconv.Itoa(int(v.Version)), ""},
				{size, ""},
				{fewOf(v.Hosts, len(v.Hosts)), ""},
				{fewOf(readers, int(v.ReadersLeft)), ""},
				{where, colour},
			})
		}
	}
	screen.PrintTable(c.Out, rows)
}

func fewOf(names []string, count int) string {
	const few = 2
	if count <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:few], ", "), count-few)
}

// removedAsTemporary says why nothing is stored of a version that was.
const removedAsTemporary = "removed: it is temporary, and was read"

func whereText(v *wire.FileVersion) (text, colour string) {
	writer := v.GetWriter()
	switch {
	case v.State == "pending":
		return fmt.Sprintf("to be made by %s, which is %s", writer.GetName(), writer.GetState()), ""
	case v.State == "missing":
		return fmt.Sprintf("not made: %s %s %s", writer.GetName(), verbOf(writer.GetState()), writer.GetState()), screen.Red
	case v.State == "gone" && writer.GetState() != taskqueue.Done.String():
		return fmt.Sprintf("made again by %s, which is %s", writer.GetName(), writer.GetState()), screen.Yellow
	case v.Lost != "":
		return "lost: " + v.Lost, screen.Red
	case v.Pfn != "" && v.Published:
		return v.Pfn + ", published", screen.Dim
	case v.Pfn != "":
		return v.Pfn, screen.Dim
	case v.Temporary && v.State == "present":
		return "in caches only: it is temporary, and was read", ""
	case v.State == "present" || v.CachesOnly:
		return "in caches only", ""
	case !v.Newest:
		return "removed: a later version has replaced it", ""
	case v.Temporary:
		return removedAsTemporary, ""
	default:
		return "not stored any more", ""
	}
}
