package logical

import "testing"

func TestCopiesInAnyOrder(t *testing.T) {
	type file struct {
		lfn     string
		version uint32
		tag     uint64
	}
	of := func(files ...file) (c Copies) {
		for _, f := range files {
			c.Add(f.lfn, f.version, f.tag)
		}
		return c
	}
	a, b := file{"a", 1, 2}, file{"b", 2, 1}
	if of(a, b) != of(b, a) {
		t.Error("the order counts")
	}
	seen := map[Copies]int{}
	for i, set := range [][]file{
		{}, {a}, {b}, {a, b}, {{"a", 2, 2}, b}, {{"a", 1, 3}, b}, {{"a", 2, 1}, {"b", 1, 2}},
		{{"b", 1, 2}, {"a", 2, 1}, {"", 0, 0}}, {{"a", 0, 3}}, {{"a", 3, 0}},
	} {
		if j, ok := seen[of(set...)]; ok {
			t.Errorf("sets %d and %d have one digest", i, j)
		}
		seen[of(set...)] = i
	}
}
