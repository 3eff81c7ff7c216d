package dispatch

import "testing"

// A copy that nobody may read goes first, however often it was used before.
func TestStaleCopiesGoFirst(t *testing.T) {
	stale, read := FileRef{LFN: "a", Version: 1, Tag: 1}, FileRef{LFN: "a", Version: 1, Tag: 2}
	for _, policy := range EvictionPolicies {
		s, err := NewShelf(policy)
		if err != nil {
			t.Fatal(err)
		}
		s.Store(read, 10, 1)
		s.Store(stale, 10, 1)
		for range 3 {
			s.Use(stale)
		}
		s.Follow([]FileRef{stale, read}, 1)
		if f, ok := s.Victim(func(FileRef) bool { return true }); f != stale || !ok {
			t.Errorf("%s: %v goes before %v", policy, f, stale)
		}
	}
}
