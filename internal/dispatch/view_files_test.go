package dispatch

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"fairway/internal/taskqueue"
)

// A file's history names the hosts that hold each version and the jobs that read it, each
// once, whether they stand in its FIFO or wait for a version that is to come.
func TestHistoryNamesHoldersAndReaders(t *testing.T) {
	s := newSharers(t)
	for _, pilot := range []taskqueue.PilotID{"p2", "p1"} {
		s.sync(pilot, "h1", "a", nil)
		s.has(pilot, "")
	}
	if versions, ok := s.core.History(1, "f"); !ok || len(versions) != 1 || !versions[0].Newest {
		t.Errorf("a file that existed has the history %+v", versions)
	}
	s.step(taskqueue.Submit{
		Run: 1,
		Jobs: []taskqueue.Job{{Name: "w", Reads: []string{"f"}, Writes: []taskqueue.Output{{LFN: "f"}},
			Needs: taskqueue.Resources{MilliCPUs: 9000}}},
	})
	for i := range maxExplained + 5 {
		s.step(taskqueue.Submit{Run: 1, Jobs: []taskqueue.Job{{Name: fmt.Sprint("r", i), Reads: []string{"f"}}}})
	}
	if names := slices.Collect(s.core.Files(1)); !slices.Equal(names, []string{"f"}) {
		t.Fatalf("the files are %q", names)
	}
	check := func(state string, writer taskqueue.State) {
		t.Helper()
		versions, ok := s.core.History(1, "f")
		if !ok || len(versions) != 2 {
			t.Fatalf("got %+v", versions)
		}
		old, next := versions[0], versions[1]
		if old.State != "present" || !old.Newest || old.PFN != "x" || !slices.Equal(old.Hosts, []string{"h1"}) {
			t.Errorf("the version that existed: %+v", old)
		}
		if next.State != state || next.Newest || next.Hosts != nil || next.MadeBy.Name != "w" || next.MadeBy.State != writer {
			t.Errorf("the version that is to come: %+v", next)
		}
		if next.ReadersLeft != maxExplained+5 || len(next.Readers) != maxExplained {
			t.Errorf("%d readers are left: %+v", next.ReadersLeft, next.Readers)
		}
	}
	check("pending", taskqueue.Ready)
	versions, _ := s.core.History(1, "f")
	if readers := versions[0].Readers; !reflect.DeepEqual(readers, []taskqueue.JobRef{versions[1].MadeBy}) {
		t.Errorf("the first version is read by %+v", readers)
	}
	if first := versions[1].Readers[0].Name; first != "r0" {
		t.Errorf("%s stands first among the readers", first)
	}
	w, _ := s.core.JobNamed(1, "w")
	s.step(taskqueue.Cancel{Jobs: []taskqueue.JobID{w}})
	check("missing", taskqueue.Cancelled)
	if _, ok := s.core.History(1, "g"); ok {
		t.Error("a file that nobody named has a history")
	}
}
