package rows

import (
	"fmt"
	"slices"
	"testing"

	"fairway/lib/seed"
)

// Names must find what a map finds, whatever is added and removed.
func TestNamesAgainstMap(t *testing.T) {
	rng := seed.Source(t)
	x := NewNames()
	names, rows := make([]string, 0, 5000), make(map[string]uint32)
	for range 20_000 {
		name := fmt.Sprint(rng.IntN(5000))
		hash := x.Hash(name)
		row, found := x.Find(hash, func(row uint32) bool { return names[row] == name })
		want, ok := rows[name]
		if found != ok || found && row != want {
			t.Fatalf("%s: found %d, %v; the map has %d, %v", name, row, found, want, ok)
		}
		if found {
			x.Remove(hash, row)
			delete(rows, name)
			continue
		}
		names = append(names, name)
		rows[name] = uint32(len(names) - 1)
		x.Add(hash, rows[name])
	}
	if len(rows) < 1000 {
		t.Fatalf("only %d names are left: the test shows little", len(rows))
	}
}

// Rows of the same hash are told apart by their names.
func TestNamesOfOneHash(t *testing.T) {
	x := NewNames()
	const hash = 1<<63 | 7
	for row := range uint32(100) {
		x.Add(hash, row)
	}
	for row := range uint32(50) {
		x.Remove(hash, row*2)
	}
	for row := range uint32(100) {
		_, found := x.Find(hash, func(r uint32) bool { return r == row })
		if found != (row%2 == 1) {
			t.Fatalf("row %d: found %v", row, found)
		}
	}
}

func TestRowsDoNotMove(t *testing.T) {
	var table Table[int]
	var at []*int
	for i := range 3 * blockLen {
		row := table.Add()
		*row = i
		at = append(at, row)
	}
	i := 0
	for row := range table.All {
		if row != at[i] || *row != i || table.At(uint32(i)) != row {
			t.Fatalf("row %d holds %d", i, *row)
		}
		i++
	}
	if i != len(at) || int(table.Len()) != i {
		t.Fatalf("%d rows of %d, Len is %d", i, len(at), table.Len())
	}
}

func TestSlabListsDoNotOverlap(t *testing.T) {
	var s Slab[int]
	var lists [][]int
	for i := range 500 {
		list := s.Take(i % 7)
		for k := range list {
			list[k] = i
		}
		lists = append(lists, append(list, -1))
	}
	long := s.Take(10 * blockLen)
	for i, list := range lists {
		if len(list) != i%7+1 || slices.ContainsFunc(list[:i%7], func(x int) bool { return x != i }) {
			t.Fatalf("list %d is %v", i, list)
		}
	}
	if len(long) != 10*blockLen || slices.ContainsFunc(long, func(x int) bool { return x != 0 }) {
		t.Fatal("a long list is not of zeros")
	}
}

func TestQueueAgainstSlice(t *testing.T) {
	rng := seed.Source(t)
	var q Queue[int]
	var list []int
	for i := range 50_000 {
		switch n := rng.IntN(1000); {
		case n == 0 && i%4 == 0:
			q.Clear()
			list = nil
		case n < 520:
			q.Push(i)
			list = append(list, i)
		case len(list) > 0:
			if q.Front() != list[0] {
				t.Fatalf("the first is %d, not %d", q.Front(), list[0])
			}
			q.Pop()
			list = list[1:]
		}
		if q.Len() != len(list) {
			t.Fatalf("%d values, not %d", q.Len(), len(list))
		}
	}
	if !slices.Equal(slices.Collect(q.All), list) {
		t.Fatal("the values are others")
	}
}

// What Retain leaves comes out in order, and it is what was live.
func TestHeapKeepsOrder(t *testing.T) {
	rng := seed.Source(t)
	for range 200 {
		var h Heap
		var live Set
		live.Grow(1000)
		var want []uint32
		for range rng.IntN(100) {
			row := uint32(rng.IntN(1000))
			h.Push(row)
			want = append(want, row)
			if rng.IntN(2) == 0 {
				live.Add(row)
			} else {
				live.Remove(row)
			}
		}
		h.Retain(live)
		want = slices.DeleteFunc(want, func(row uint32) bool { return !live.Has(row) })
		slices.Sort(want)
		for _, row := range want {
			if h[0] != row {
				t.Fatalf("the lowest is %d, not %d", h[0], row)
			}
			h.Pop()
		}
		if len(h) != 0 {
			t.Fatalf("%v is left", h)
		}
	}
}

// byValue is ordered by its value.
type byValue int

func (v byValue) Before(other byValue) bool { return v < other }

// The least value comes first, whatever is added, removed and changed.
func TestOrderedKeepsOrder(t *testing.T) {
	rng := seed.Source(t)
	for range 200 {
		var h Ordered[byValue]
		var want []byValue
		for range rng.IntN(60) {
			switch v := byValue(rng.IntN(40)); {
			case len(h) == 0 || rng.IntN(3) > 0:
				h.Push(v)
				want = append(want, v)
			case rng.IntN(2) == 0:
				h[0] += v
				h.Sink()
				want[0] += v
			default:
				if got := h.Pop(); got != want[0] {
					t.Fatalf("popped %d, not %d", got, want[0])
				}
				want = want[1:]
			}
			slices.Sort(want)
			if len(h) > 0 && h[0] != want[0] {
				t.Fatalf("%d is first, not %d", h[0], want[0])
			}
		}
	}
}

func TestAscendingKeepsOrder(t *testing.T) {
	rng := seed.Source(t)
	for range 200 {
		var a Ascending[byValue]
		var want []byValue
		next := byValue(0)
		for range rng.IntN(300) {
			if len(want) == 0 || rng.IntN(5) > 1 {
				next += byValue(rng.IntN(3))
				v := next - byValue(rng.IntN(5)/4*rng.IntN(20)) // mostly in order
				a.Push(v)
				want = append(want, v)
				slices.Sort(want)
			} else {
				if got := a.Pop(); got != want[0] {
					t.Fatalf("popped %d, not %d", got, want[0])
				}
				want = want[1:]
			}
			if a.Len() != len(want) {
				t.Fatalf("it has %d values, not %d", a.Len(), len(want))
			}
		}
	}
}

// What was given out stays as it is, whatever comes after it.
func TestText(t *testing.T) {
	rng := seed.Source(t)
	var text Text
	var want, got []string
	for range 5000 {
		b := make([]byte, rng.IntN(200))
		for i := range b {
			b[i] = byte(rng.IntN(256))
		}
		want = append(want, string(b))
		switch rng.IntN(3) {
		case 0:
			got = append(got, text.String(string(b)))
		case 1:
			got = append(got, text.StringOf(b))
		default:
			kept := text.Bytes(b)
			got = append(got, string(kept))
			_ = append(kept, 'x') // not over what comes next
		}
		clear(b)
	}
	if !slices.Equal(got, want) {
		t.Fatal("a text has changed")
	}
	if long := text.String(string(make([]byte, 3*lastPiece))); len(long) != 3*lastPiece {
		t.Errorf("a long text has %d bytes", len(long))
	}
}
