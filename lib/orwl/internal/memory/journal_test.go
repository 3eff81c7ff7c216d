package memory

import (
	"slices"
	"testing"
)

// changedBlocks has the first byte of blocks be another one.
func changedBlocks(data []byte, blocks ...int) {
	for _, i := range blocks {
		data[i*BlockSize]++
	}
}

func upTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// Of each version the journal knows the blocks that differ from the one before, side by side in one piece.
func TestJournalKnowsTheBlocksThatChanged(t *testing.T) {
	const tail = 17
	size := 5*BlockSize + tail
	data := make([]byte, size)
	j := NewJournal(data, 1)
	since := func(version uint64, want ...Extent) {
		t.Helper()
		if got := j.Since(len(data), version); !slices.Equal(got, want) {
			t.Errorf("since version %d changed %v; want %v", version, got, want)
		}
	}
	since(0, Extent{0, size})
	since(1)
	j.Before(data, 1)
	since(1)
	changedBlocks(data, 2)
	j.Commit(data, 2)
	since(1, Extent{2 * BlockSize, BlockSize})
	since(2)
	changedBlocks(data, 0, 4, 5)
	j.Commit(data, 3)
	since(2, Extent{0, BlockSize}, Extent{4 * BlockSize, BlockSize + tail})
	since(1, Extent{0, BlockSize}, Extent{2 * BlockSize, BlockSize}, Extent{4 * BlockSize, BlockSize + tail})
	j.Commit(data, 4)
	since(3)

	data = append(data, make([]byte, 2*BlockSize)...)
	changedBlocks(data, 1)
	j.Commit(data, 5)
	since(4, Extent{BlockSize, BlockSize}, Extent{5 * BlockSize, 2*BlockSize + tail})
	data = data[:2*BlockSize]
	j.Commit(data, 6)
	since(5)
	since(0, Extent{0, 2 * BlockSize})
}

// What a writer elsewhere has changed is noted as it comes, and is no change of the next writer here.
func TestJournalOfWhatComes(t *testing.T) {
	data := make([]byte, 6*BlockSize)
	for _, known := range []bool{true, false} {
		j := NewJournal(data, 1)
		if known {
			j.Before(data, 1)
		}
		changedBlocks(data, 2, 3)
		j.Wrote(data, []Extent{{BlockSize + 5, BlockSize}, {3*BlockSize + 1, BlockSize - 1}, {5 * BlockSize, 1}}, 2)
		want := []Extent{{BlockSize, 3 * BlockSize}, {5 * BlockSize, BlockSize}}
		if got := j.Since(len(data), 1); !slices.Equal(got, want) {
			t.Errorf("known %t: came %v; want %v", known, got, want)
		}
		j.Commit(data, 3)
		if got := j.Since(len(data), 2); (got == nil) != known {
			t.Errorf("known %t: of what came changed %v", known, got)
		}
	}
}

// Where a writer changes nearly all of many blocks, the next ones are taken to change all, and after some the
// changes are looked for again.
func TestJournalOfWhoChangesEverything(t *testing.T) {
	for _, c := range []struct {
		blocks, changed int
		all             bool
	}{
		{20, 16, false}, {20, 17, true}, {22, 17, true}, {23, 17, false}, {24, 18, false}, {24, 19, true},
		{16, 16, false}, {40, 30, false}, {40, 31, true}, {40, 40, true},
	} {
		data := make([]byte, c.blocks*BlockSize)
		j := NewJournal(data, 1)
		j.Before(data, 1)
		changedBlocks(data, upTo(c.changed)...)
		j.Commit(data, 2)
		if (j.skip == examineEvery) != c.all || (j.skip == 0) == c.all {
			t.Errorf("after %d of %d blocks %d commits are not looked at", c.changed, c.blocks, j.skip)
		}
	}
	data := make([]byte, 20*BlockSize)
	j := NewJournal(data, 1)
	j.Before(data, 1)
	longer := make([]byte, 21*BlockSize)
	changedBlocks(longer, upTo(20)...)
	if j.Commit(longer, 2); j.skip > 0 {
		t.Error("a resize is taken for a writer that changes everything")
	}

	data = longer
	changedBlocks(data, upTo(21)...)
	j.Commit(data, 3)
	version := uint64(3)
	commit := func(want ...Extent) {
		t.Helper()
		skip := j.skip
		if j.Before(data, version); j.skip != skip {
			t.Error("making sums counts as a commit")
		}
		changedBlocks(data, 7)
		version++
		j.Commit(data, version)
		if got := j.Since(len(data), version-1); !slices.Equal(got, want) {
			t.Errorf("in version %d changed %v; want %v", version, got, want)
		}
	}
	for range examineEvery {
		commit(Extent{0, len(data)})
	}
	commit(Extent{7 * BlockSize, BlockSize})
	commit(Extent{7 * BlockSize, BlockSize})
}

func TestTooManyPiecesAreOne(t *testing.T) {
	if got := bounded(make([]Extent, MaxExtents), 9); len(got) != MaxExtents {
		t.Errorf("%d pieces are %d", MaxExtents, len(got))
	}
	if got := bounded(make([]Extent, MaxExtents+1), 9); !slices.Equal(got, []Extent{{0, 9}}) {
		t.Errorf("%d pieces are %d", MaxExtents+1, len(got))
	}
	if WorthAJournal(make([]byte, BlockSize)) || !WorthAJournal(make([]byte, BlockSize+1)) {
		t.Error("data of one block is sent in pieces, or more is not")
	}
}

// Lines that differ are found, the short one at the end too.
func TestLinesThatDiffer(t *testing.T) {
	const size = 5*line + 9
	for _, c := range []struct {
		changed []int
		from    int
		want    []Extent
	}{
		{nil, 0, nil}, {[]int{0}, 0, []Extent{{0, line}}}, {[]int{0}, line, nil},
		{[]int{line, 3*line - 1, 5*line + 8}, 0, []Extent{{line, 2 * line}, {5 * line, 9}}},
		{[]int{4 * line, size - 1}, 2 * line, []Extent{{4 * line, line + 9}}},
	} {
		a, b := make([]byte, size), make([]byte, size)
		for _, at := range c.changed {
			a[at] = 1
		}
		if got := appendDiffering(nil, a, b, c.from, size); !slices.Equal(got, c.want) {
			t.Errorf("of bytes %v from %d on differ %v; want %v", c.changed, c.from, got, c.want)
		}
	}
}
