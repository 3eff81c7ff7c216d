package flow

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"fairway/internal/flow/pattern"
)

// A run that makes nothing of something is not finished, unless the workflow
// says may_be_empty: an input that is closed without a file, a file without
// records, a file without a partner in a join, names that no job chose, and a
// step that takes none of the files that are there. What is empty because of
// that is not told again.

const sayEmpty = "if that may be, say `may_be_empty: true` there"

func (f *Flow) emptyInput(state *inputState) {
	if in := state.in; len(state.arrived) == 0 && !in.MayBeEmpty {
		f.refuse(nil, "the input %s ended without a file (%s): look at the names; %s", in.Name, in.From(), sayEmpty)
	}
}

// noRecords looks at a file that was split.
func (f *Flow) noRecords(st *stepState, in *file, records int64) {
	if records == 0 && !st.step.Data.MayBeEmpty {
		f.refuse(st, "step %s makes no job of %s, which has no records; %s", st.step.Name, in.lfn, sayEmpty)
	}
}

func (f *Flow) lookForNothing(st *stepState) {
	if st.looked || st.step.Replayed || st.watermark != forever || st.open.closed() != forever {
		return
	}
	st.looked = true
	if st.step.Data.MayBeEmpty {
		return
	}
	f.noneChosen(st)
	if !st.step.Plain() {
		f.noneTaken(st)
	}
	if st.join != nil {
		f.noPartners(st)
	}
}

// noneChosen tells of names under writes that fit nothing any job wrote.
func (f *Flow) noneChosen(st *stepState) {
	for _, m := range st.step.Found.Makers {
		if m.Fresh && st.ran > 0 && f.made[m] == 0 {
			f.refuse(st, "no job of step %s wrote a file that fits %q; %s", st.step.Name, m.Pattern.Text, sayEmpty)
		}
	}
}

// noneTaken tells of a step that had files to choose from.
func (f *Flow) noneTaken(st *stepState) {
	for i, makers := range st.step.Found.Feeds {
		if st.took[i] > 0 {
			continue
		}
		for _, m := range makers {
			if f.made[m] > 0 {
				f.refuse(st, "step %s takes none of the files of %s: none fits %q; %s", st.step.Name, m.Owner(),
					st.step.Sources()[i].Text, sayEmpty)
			}
		}
	}
}

// noPartners tells of files that are in no combination, if all patterns have
// files: else that was told where they are missing.
func (f *Flow) noPartners(st *stepState) {
	if slices.Contains(st.took, 0) {
		return
	}
	for _, source := range st.join.sources {
		if len(source.single) == 0 {
			continue
		}
		first := slices.MinFunc(slices.Collect(maps.Keys(source.single)), func(a, b *file) int {
			return cmp.Or(a.wave-b.wave, pattern.Natural(a.lfn, b.lfn))
		})
		f.refuse(st, "step %s makes no job of %s: no file of its other patterns fits it%s; %s", st.step.Name, first.lfn,
			andMore(len(source.single)-1), sayEmpty)
	}
}

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (nor %d more)", n)
}
