package orwl

import "testing"

// The vector forms test and cancel all of their locks.
func TestVectorsTestAndCancel(t *testing.T) {
	overEach(t, func(t *testing.T, network string, options []Option) {
		x, y := newLocation(t, "x", 8, options...), newLocation(t, "y", 8, options...)
		_, p := served(t, network, x, y)
		mx, my := mirror(t, p, "x"), mirror(t, p, "y")
		var a, b Handle
		var c, d Pair
		must(t, Insert(background, a.Writing(mx), b.Writing(my)))
		must(t, Insert(background, c.Writing(mx), d.Reading(my)))
		handles, pairs := Handles{&a, &b}, Pairs{&c, &d}
		waitFor(t, func() bool { return granted(t, handles) })
		if granted(t, pairs) {
			t.Fatal("the pairs are granted behind others")
		}
		must(t, a.Release())
		waitFor(t, func() bool { return granted(t, &c) })
		if granted(t, pairs) {
			t.Fatal("one of two pairs is enough")
		}
		must(t, handles.Cancel()) // the one that is held, too
		waitFor(t, func() bool { return granted(t, pairs) })
		must(t, pairs.Cancel())
		waitFor(t, func() bool { return x.Waiting()+y.Waiting() == 0 })
	})
}
