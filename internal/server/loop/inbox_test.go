package loop

import (
	"errors"
	"testing"
)

// Who closes the last input of a run ends it, perhaps before the loop is woken for that.
func TestALoopThatHasEndedNeedsNoWaking(t *testing.T) {
	inbox := NewInbox()
	close(inbox.ended)
	if err := inbox.Wake(t.Context()); err != nil {
		t.Errorf("waking it fails: %v", err)
	}
	if err := inbox.Do(t.Context(), &Request{}); !errors.Is(err, ErrEnded) {
		t.Errorf("a request gets %v", err)
	}
}
