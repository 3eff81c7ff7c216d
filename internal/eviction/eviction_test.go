package eviction

import "testing"

// A copy that nobody may read goes first, however often it was used before.
func TestStaleCopiesGoFirst(t *testing.T) {
	stale, read := "a tag 1", "a tag 2"
	for _, policy := range Policies {
		o, err := New[string](policy)
		if err != nil {
			t.Fatal(err)
		}
		o.Store(read, 10, 1)
		o.Store(stale, 10, 1)
		for range 3 {
			o.Use(stale)
		}
		o.Follow([]string{stale, read}, 1)
		if f, ok := o.First(func(string) bool { return true }); f != stale || !ok {
			t.Errorf("%s: %q goes before %q", policy, f, stale)
		}
	}
}
