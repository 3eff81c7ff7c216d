package folder

import (
	"testing"

	"fairway/internal/store"
	"fairway/internal/taskqueue"
)

// A server that another one has followed may wake up in the middle of a commit. What it
// writes then must not reach the store that the other one has.
func TestAFencedStoreIsNotChangedByAnEarlierServer(t *testing.T) {
	lock, l, err := Claim(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	apply := func(s store.Store, key string) {
		t.Helper()
		if err := s.Apply(t.Context(), []taskqueue.Record{{Table: "table", Key: key, Body: []byte("x")}}); err != nil {
			t.Fatal(err)
		}
	}
	first, err := OpenStore(l.State, false)
	if err != nil {
		t.Fatal(err)
	}
	apply(first, "before")
	second, err := OpenStore(l.State, true)
	if err != nil {
		t.Fatal(err)
	}
	apply(first, "late")
	apply(second, "after")
	// Neither is closed, as if both were killed: closing removes a log by its name, which
	// is that of the store of another by now.
	again, err := OpenStore(l.State, true)
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	records, err := again.Load(t.Context(), "table")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, r := range records {
		keys = append(keys, r.Key)
	}
	if len(keys) != 2 || keys[0] != "after" || keys[1] != "before" {
		t.Errorf("the store has %q", keys)
	}
}
