package orwl

import "testing"

// Next requests of several pairs are in the mode of the present ones, also at
// mirrors.
func TestPairsKeepTheirMode(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		x, y := newLocation(t, "x", 8, options...), newLocation(t, "y", 8, options...)
		_, p := served(t, network, x, y)
		for name, at := range map[string][2]Resource{"locations": {x, y}, "mirrors": {mirror(t, p, "x"), mirror(t, p, "y")}} {
			var writer, reader Pair
			both := Pairs{&writer, &reader}
			must(t, Insert(background, writer.Writing(at[0]), reader.Reading(at[1])))
			for range 3 {
				must(t, both.Acquire(background))
				counts, err := WriteAs[uint64](&writer)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				counts[0]++
				if _, err := WriteAs[uint64](&reader); err == nil {
					t.Fatalf("%s: the reader writes", name)
				}
				must(t, both.Release())
			}
			must(t, both.Cancel())
		}
		if got := read(t, x)[0]; got != 6 {
			t.Fatalf("%d writes of 6 count", got)
		}
	})
}
