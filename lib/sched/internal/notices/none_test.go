package notices

import (
	"testing"
	"testing/synctest"
	"time"
)

// Where nothing tells of changes, a wait ends with its limit or with a nudge, of which several are one.
func TestNothingTellsOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := None()
		if n.Watch("/") {
			t.Error("it says that it tells of a folder")
		}
		changed := func(folder, name string) { t.Errorf("told of %s in %s", name, folder) }
		began := time.Now()
		n.Wait(0, changed)
		n.Wait(time.Hour, changed)
		if took := time.Since(began); took != time.Hour {
			t.Errorf("waited for %v; want an hour", took)
		}

		returned := false
		go func() {
			n.Wait(-1, changed)
			returned = true
		}()
		synctest.Wait()
		if returned {
			t.Error("a wait without a limit ended before a nudge")
		}
		n.Nudge()
		synctest.Wait()
		if !returned {
			t.Error("a nudge ends no wait")
		}

		n.Nudge()
		n.Nudge()
		began = time.Now()
		n.Wait(time.Hour, changed)
		if took := time.Since(began); took != 0 {
			t.Errorf("after a nudge waited for %v", took)
		}
		n.Wait(time.Hour, changed)
		if took := time.Since(began); took != time.Hour {
			t.Errorf("two nudges before a wait end two: waited for %v", took)
		}
	})
}
