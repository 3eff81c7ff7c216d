package cli

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"fairway/internal/quantity"
	"fairway/internal/wire"
)

func (c *console) cacheCommand() *cobra.Command {
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
  - PREFETCHED: files brought in before their job began, and first reads of them;
  - EVICTED: files that have left the node to make room.
With NODE (a host or pattern of hosts) or --files, list the files of the caches, and
which job is expected to read each next; PATTERN selects them. Files are known
while a run is under way, afterwards the counts of the last run.`,
		Example: `  fairway cache
  fairway cache node7
  fairway cache '*' 'aligned/{sample}.bam' --json`,
		Args: takes(0, 2, "node"),
		RunE: func(command *cobra.Command, arguments []string) error {
			if limit <= 0 {
				return fail(exitUsage, "", "--limit is a number above 0, not %d", limit)
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

func (c *console) listCaches(ctx context.Context, request *wire.ListCachesRequest) error {
	return c.askAbout(ctx, func(ctx context.Context, client wire.WorkflowClient) error {
		answer, err := client.ListCaches(ctx, request)
		if err != nil {
			return err
		}
		if len(answer.Nodes) == 0 && request.Node != "" {
			return fail(exitNotFound, "`fairway cache` lists them", "no pilot of this run was on %q", request.Node)
		}
		return c.answer(answer, func() { c.printCaches(request, answer) })
	})
}

func (c *console) printCaches(request *wire.ListCachesRequest, answer *wire.ListCachesResponse) {
	if len(answer.Nodes) == 0 && !answer.Live {
		fmt.Fprintln(c.err, "nothing runs here, and the last run has told nothing of its caches")
		return
	}
	c.printNodeCaches(answer)
	if request.Files && answer.Live {
		fmt.Fprintln(c.out)
		c.printCached(answer.Files)
	}
	switch {
	case !answer.Live:
		fmt.Fprintln(c.err, "nothing runs here: these are the counts of the last run; what the caches hold is known while "+
			"a run is under way")
	case answer.More:
		fmt.Fprintf(c.err, "%d of %d files; more: --limit; fewer: a pattern\n", len(answer.Files), answer.Total)
	}
}

func (c *console) printNodeCaches(answer *wire.ListCachesResponse) {
	if len(answer.Nodes) == 0 {
		fmt.Fprintln(c.out, "no caches")
		return
	}
	rows := [][]cell{{{"NODE", dim}}}
	if answer.Live {
		rows[0] = append(rows[0], cell{"CACHE", dim}, cell{"USED", dim}, cell{"FILES", dim}, cell{"PINNED", dim})
	}
	rows[0] = append(rows[0], cell{"HITS", dim}, cell{"MISSES", dim}, cell{"RATIO", dim}, cell{"FROM HOSTS", dim},
		cell{"PREFETCHED", dim}, cell{"EVICTED", dim})
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
		row := []cell{{name, ""}}
		if answer.Live {
			used := quantity.Bytes(n.Bytes) + " of " + quantity.Bytes(n.LimitBytes)
			if n.LimitBytes == 0 {
				used = "" // it has no cache, or no pilot any more
			}
			row = append(
				row, cell{strings.Join(n.Kinds, ", "), ""}, cell{used, ""},
				cell{strconv.FormatInt(n.Files, 10), ""}, cell{numberAndSize(n.PinnedFiles, n.PinnedBytes), ""},
			)
		}
		rows = append(rows, append(
			row, cell{numberAndSize(n.Hits, n.HitBytes), ""}, cell{numberAndSize(n.Misses, n.MissBytes), ""}, cell{ratio, ""},
			cell{numberAndSize(n.RemoteHits, n.RemoteBytes), ""}, cell{prefetched, ""},
			cell{numberAndSize(n.EvictedFiles, n.EvictedBytes), ""},
		))
	}
	printTable(c.out, rows)
}

// numberAndSize is a number of files and their bytes.
func numberAndSize(files, bytes int64) string {
	if files == 0 {
		return "0"
	}
	return fmt.Sprintf("%d, %s", files, quantity.Bytes(bytes))
}

func (c *console) printCached(files []*wire.CachedCopy) {
	if len(files) == 0 {
		fmt.Fprintln(c.out, "no such files")
		return
	}
	rows := [][]cell{{{"FILE", dim}, {"VERSION", dim}, {"SIZE", dim}, {"NODE", dim}, {"PINNED", dim}, {"NEXT USE", dim}}}
	for _, f := range files {
		pinned, next, colour := "", f.GetNextUse().GetName(), ""
		if f.Pinned {
			pinned = "yes"
		}
		if f.Stale {
			next, colour = "none: no job may read this copy", dim
		}
		rows = append(rows, []cell{
			{f.Lfn, ""}, {strconv.Itoa(int(f.Version)), ""}, {quantity.Bytes(f.Size), ""}, {f.Host, ""}, {pinned, ""},
			{next, colour},
		})
	}
	printTable(c.out, rows)
}
