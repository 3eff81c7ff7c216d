package api

import (
	"strings"
	"testing"

	"fairway/internal/wire"
)

// A pilot of another version understands at least that it is to leave.
func TestAnOlderPilotIsToldToLeave(t *testing.T) {
	a := otherProtocol(&wire.SyncRequest{Seq: 4, LastAnswer: 1 << 33})
	if !a.GetLeaveNow() || a.GetNumber() <= 1<<33 || a.GetSeen() != 4 || !strings.Contains(a.GetWhy(), "version 0") {
		t.Error(a)
	}
}
