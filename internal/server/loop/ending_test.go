package loop

import (
	"fmt"
	"strings"
	"testing"
)

// What is not told is counted: a person who reads twenty problems would take them for all.
func TestWhatIsNotToldIsCounted(t *testing.T) {
	e := newEnding()
	for i := range max(ProblemLimit, NoteLimit) + 3 {
		for range 2 {
			if i < ProblemLimit+3 {
				e.Problem(fmt.Sprint("problem ", i%(ProblemLimit+1)))
			}
			if i < NoteLimit {
				e.Note(fmt.Sprint("note ", i))
			}
		}
	}
	if got := e.Problems(); len(got) != ProblemLimit {
		t.Errorf("%d problems are told: %q", len(got), got)
	}
	all := e.AllProblems()
	if len(all) != ProblemLimit+1 || !strings.Contains(all[ProblemLimit], ": 2;") {
		t.Errorf("the end tells %q", all)
	}
	if notes := e.AllNotes(); len(notes) != NoteLimit {
		t.Errorf("the end tells more notes than there are: %q", notes)
	}
}
