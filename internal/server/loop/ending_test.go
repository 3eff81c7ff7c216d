package loop

import (
	"fmt"
	"strings"
	"testing"

	"fairway/internal/taskqueue"
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

// People are told of a host that holds other bytes of a file than were told before.
func TestCopiesThatDifferAreNoted(t *testing.T) {
	e := newEnding()
	e.observe(&taskqueue.Event{Kind: taskqueue.CopyDiffers, Host: "node7", Reason: "raw/x"})
	if notes := e.Notes(); len(notes) != 1 || !strings.Contains(notes[0], "node7 holds other bytes of raw/x") {
		t.Errorf("%q", notes)
	}
}
