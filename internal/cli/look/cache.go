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
	"fairway/internal/wire"
)

// CacheCommand is `fairway cache`.
func (c *Commands) CacheCommand() *cobra.Command {
	limit, files := int32(filesListed), false
	command := &cobra.Command{
		Use:   "cache [NODE [PATTERN]]",
		Short: "Show what the caches hold, and how many inputs they served",
		Long: `Show the caches of each node: their files, and how many inputs they served in
this run. A file that several pilots of a node share counts once.
  - CACHE: who shares it: pilot, host, global; or none;
  - PINNED: files that running jobs read; they are not evicted;
  - HITS, MISSES, RATIO: inputs found in a cache, or read from storage;
  - FROM HOSTS: hits that came from caches of other hosts;
  - PREFETCHED: files brought in before their job began, and their first reads;
  - EVICTED: files that have left the node to make room.
With NODE (a host or pattern of hosts) or --files, list the files of the caches, and
which job is expected to read each next; PATTERN selects them. Files are known
while a run is under way, afterwards the counts of the last run.`,
		Example: `  fairway cache
  fairway cache node7
  fairway cache '*' 'aligned/{sample}.bam' --json`,
		Args: console.Takes(0, 2, "node"),
		RunE: func(command *cobra.Command, arguments []string) error {
			if limit <= 0 {
				return console.Fail(console.ExitUsage, "", "--limit is a number above 0, not %d", limit)
			}
			request := &wire.ListCachesRequest{Files: files || len(arguments) > 0, Limit: limit}
			if len(arguments) > 0 {
				request.Node = arguments[0]
			}
			if len(arguments) > 1 {
				request.Pattern = arguments[1]
			}
			return c.listCaches(command.Context(), request)
		},
	}
	command.Flags().BoolVar(&files, "files", false, "list the files of all nodes")
	command.Flags().Int32Var(&limit, "limit", limit, "list at most this many files")
	return command
}

func (c *Commands) listCaches(ctx context.Context, request *wire.ListCachesRequest) error {
	return c.AskAbout(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		answer, err := client.ListCaches(ctx, request)
		if err != nil {
			return err
		}
		if len(answer.Nodes) == 0 && request.Node != "" {
			return console.Fail(console.ExitNotFound, "`fairway cache` lists them",
				"no pilot of this run was on %q", request.Node)
		}
		return c.Answer(answer, func() { c.printCaches(request, answer) })
	})
}

func (c *Commands) printCaches(request *wire.ListCachesRequest, answer *wire.ListCachesResponse) {
	if len(answer.Nodes) == 0 && !answer.Live {
		fmt.Fprintln(c.Err, "nothing runs here, and the last run has told nothing of its caches")
		return
	}
	c.printNodeCaches(answer)
	if request.Files && answer.Live {
		fmt.Fprintln(c.Out)
		c.printCached(answer.Files)
	}
	switch {
	case !answer.Live:
		fmt.Fprintln(c.Err, "nothing runs here: these are the counts of the last run; what the caches hold is known while "+
			"a run is under way")
	case answer.More:
		fmt.Fprintf(c.Err, "%d of %d files; more: --limit; fewer: a pattern\n", len(answer.Files), answer.Total)
	}
}

func (c *Commands) printNodeCaches(answer *wire.ListCachesResponse) {
	if len(answer.Nodes) == 0 {
		fmt.Fprintln(c.Out, "no caches")
		return
	}
	rows := [][]screen.Cell{screen.Head("NODE")}
	if answer.Live {
		rows[0] = append(rows[0], screen.Cell{"CACHE", screen.Dim}, screen.Cell{"USED", screen.Dim}, screen.Cell{"FILES",
			screen.Dim}, screen.Cell{"PINNED", screen.Dim})
	}
	rows[0] = append(rows[0], screen.Cell{"HITS", screen.Dim}, screen.Cell{"MISSES", screen.Dim}, screen.Cell{"RATIO",
		screen.Dim}, screen.Cell{"FROM HOSTS", screen.Dim},
		screen.Cell{"PREFETCHED", screen.Dim}, screen.Cell{"EVICTED", screen.Dim})
	for _, n := range answer.Nodes {
		name, ratio, prefetched := n.Host, "", numberAndSize(n.PrefetchedFiles, n.PrefetchedBytes)
		if name == "" {
			name = "(not known)"
		}
		if n.Hits+n.Misses > 0 {
			ratio = fmt.Sprintf("%.0f %%", 100*n.HitRatio)
		}
		if n.PrefetchedFiles > 0 {
			prefetched += fmt.Sprintf(", %s", quantity.Count(n.PrefetchHits, "hit"))
		}
		row := []screen.Cell{{name, ""}}
		if answer.Live {
			used := quantity.Bytes(n.Bytes) + " of " + quantity.Bytes(n.LimitBytes)
			if n.LimitBytes == 0 {
				used = "" // it has no cache, or no pilot any more
			}
			row = append(
				row, screen.Cell{strings.Join(n.Kinds, ", "), ""}, screen.Cell{used, ""},
				screen.Cell{strconv.FormatInt(n.Files, 10), ""}, screen.Cell{numberAndSize(n.PinnedFiles, n.PinnedBytes), ""},
			)
		}
		rows = append(rows, append(
			row, screen.Cell{numberAndSize(n.Hits, n.HitBytes), ""}, screen.Cell{numberAndSize(n.Misses, n.MissBytes), ""},
			screen.Cell{ratio, ""},
			screen.Cell{numberAndSize(n.RemoteHits, n.RemoteBytes), ""}, screen.Cell{prefetched, ""},
			screen.Cell{numberAndSize(n.EvictedFiles, n.EvictedBytes), ""},
		))
	}
	screen.PrintTable(c.Out, rows)
}

func numberAndSize(files, bytes int64) string {
	if files == 0 {
		return "0"
	}
	return fmt.Sprintf("%d, %s", files, quantity.Bytes(bytes))
}

func (c *Commands) printCached(files []*wire.CachedCopy) {
	if len(files) == 0 {
		fmt.Fprintln(c.Out, "no such files")
		return
	}
	rows := [][]screen.Cell{screen.Head("FILE", "VERSION", "SIZE", "NODE", "PINNED", "NEXT USE")}
	for _, f := range files {
		pinned, next, colour := "", f.GetNextUse().GetName(), ""
		if f.Pinned {
			pinned = "yes"
		}
		if f.Stale {
			next, colour = "none: no job may read this copy", screen.Dim
		}
		rows = append(rows, []screen.Cell{
			{f.Lfn, ""}, {strconv.Itoa(int(f.Version)), ""}, {quantity.Bytes(f.Size), ""}, {f.Host, ""}, {pinned, ""},
			{next, colour},
		})
	}
	screen.PrintTable(c.Out, rows)
}
