package screen

import (
	"fmt"
	"io"
	"strings"

	"fairway/internal/quantity"
	"fairway/internal/wire"
)

// PrintSummary tells at the end of a run what was done and where it is.
func PrintSummary(w io.Writer, report *wire.ProgressReport) {
	summary, total, s := report.Summary, TotalOf(report.Steps), StyleOf(w)
	if report.Succeeded && summary.GetAttempts() == 0 {
		fmt.Fprintf(w, "%s: nothing to do, %s done before\n", s.Paint(Bold, report.Workflow),
			quantity.Count(total.Done, "job"))
		printResults(w, summary, s)
		return
	}
	fmt.Fprintf(w, "%s %s after %s: %s\n", s.Paint(Bold, report.Workflow), endOf(report, s),
		quantity.Seconds(summary.GetWallSeconds()), doneText(total))
	row := func(name, format string, values ...any) {
		printSummaryRow(w, s, name, fmt.Sprintf(format, values...))
	}
	row("attempts", "%d on %s", summary.GetAttempts(), quantity.Count(summary.GetPilots(), "pilot"))
	row("cache", "%s", cacheText(summary))
	row("moved", "%s from storage, %s from caches, %s written",
		quantity.Bytes(summary.GetBytesStaged()), quantity.Bytes(summary.GetBytesCached()),
		quantity.Bytes(summary.GetBytesWritten()))
	if n := summary.GetRemoved(); n > 0 {
		row("removed", "%s, %s, when all that read them were done", quantity.Count(n, "temporary file"),
			quantity.Bytes(summary.GetBytesRemoved()))
	}
	if all := summary.GetStageInSeconds(); all >= shortStageIn {
		row("stage-in", "%s, %.0f %% of it hidden behind computing", quantity.Seconds(all),
			100*summary.GetHiddenSeconds()/all)
	}
	row("time", "%s", timeText(summary))
	printResults(w, summary, s)
}

func printSummaryRow(w io.Writer, s style, name, text string) {
	fmt.Fprintf(w, "  %s  %s\n", s.Paint(Dim, pad(name, 9)), text)
}

func printResults(w io.Writer, summary *wire.Summary, s style) {
	if summary.GetPublishedCount() > 0 {
		printSummaryRow(w, s, "results", resultsText(summary))
	}
}

func endOf(report *wire.ProgressReport, s style) string {
	switch {
	case report.Succeeded:
		return s.Paint(Green, "finished")
	case TotalOf(report.Steps).Failed > 0:
		return s.Paint(Red, "failed")
	default:
		return s.Paint(Yellow, "stopped")
	}
}

func doneText(total *wire.StepProgress) string {
	text := quantity.Count(total.Done, "job") + " done"
	if total.Reused > 0 {
		text += fmt.Sprintf(" (%d of them before)", total.Reused)
	}
	if states := StatesText(total, false); total.Done < total.Total && states != "" {
		text += ", " + states
	}
	return text
}

// timeText tells where the time of the attempts went. They wait and run side by
// side, so a sum over them would be more than the run took; the mean says what a
// job met with.
func timeText(summary *wire.Summary) string {
	count := float64(max(1, summary.GetAttempts()))
	text := fmt.Sprintf("%s queued, %s staging, %s computing",
		quantity.Seconds(summary.GetWaitingSeconds()/count), quantity.Seconds(summary.GetStagingSeconds()/count),
		quantity.Seconds(summary.GetComputingSeconds()/count))
	if summary.GetAttempts() > 1 {
		text += fmt.Sprintf(" per attempt; %s of computing in all", quantity.Seconds(summary.GetComputingSeconds()))
	}
	return text
}

func cacheText(summary *wire.Summary) string {
	inputs := summary.GetCacheHits() + summary.GetCacheMisses()
	if inputs == 0 {
		return "no inputs staged in"
	}
	text := fmt.Sprintf("%s of %s (%.0f %%)", quantity.Count(summary.GetCacheHits(), "hit"),
		quantity.Count(inputs, "input"), 100*float64(summary.GetCacheHits())/float64(inputs))
	if n := summary.GetRemoteHits(); n > 0 {
		text += fmt.Sprintf(", %d from other hosts", n)
	}
	if n := summary.GetPrefetchHits(); n > 0 {
		text += fmt.Sprintf(", %d prefetched", n)
	}
	return text
}

// shortStageIn is how many seconds of stage-in, of all attempts together, the summary
// says nothing of.
const shortStageIn = 0.1

const namesInSummary = 4

func resultsText(summary *wire.Summary) string {
	var names []string
	for _, name := range summary.GetPublished()[:min(len(summary.GetPublished()), namesInSummary)] {
		names = append(names, OneLine(name))
	}
	text := OneLine(DisplayPath(summary.GetResults())) + "/"
	switch more := summary.GetPublishedCount() - int64(len(names)); {
	case summary.GetPublishedCount() == 1 && len(names) == 1:
		return text + names[0]
	case more > 0:
		return fmt.Sprintf("%s: %s and %d more", text, strings.Join(names, ", "), more)
	default:
		return text + ": " + strings.Join(names, ", ")
	}
}
