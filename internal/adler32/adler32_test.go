package adler32

import (
	"bytes"
	standard "hash/adler32"
	"math/rand/v2"
	"testing"
)

// The sums are those of the standard library, for bytes that fill the lanes most, at every
// length around a block, and whatever the pieces.
func TestSumIsThatOfTheStandardLibrary(t *testing.T) {
	t.Run("wide", testSum)
	defer func(was bool) { wide = was }(wide)
	wide = false
	t.Run("lanes", testSum)
}

func testSum(t *testing.T) {
	full := bytes.Repeat([]byte{0xff}, max(reduceAfter, mostPieces*pieceSize)+3*blockSize)
	random := make([]byte, len(full))
	source := rand.NewChaCha8([32]byte{7})
	_, _ = source.Read(random)
	for name, data := range map[string][]byte{"full": full, "random": random} {
		for n := range 3*blockSize + 2 {
			check(t, name, data[:n], n)
		}
		check(t, name, data, len(data))
		check(t, name, data, 1000)
		check(t, name, data, 7)
	}
}

func check(t *testing.T, name string, data []byte, piece int) {
	t.Helper()
	h := New()
	for rest := data; len(rest) > 0; {
		n := min(piece, len(rest))
		if wrote, err := h.Write(rest[:n]); wrote != n || err != nil {
			t.Fatalf("Write: %d, %v", wrote, err)
		}
		rest = rest[n:]
	}
	if want := standard.Checksum(data); h.Sum32() != want {
		t.Fatalf("%s: %d bytes in pieces of %d have the sum %08x instead of %08x", name, len(data), piece, h.Sum32(), want)
	}
}

func TestSumIsInTheOrderOfTheStandardLibrary(t *testing.T) {
	h, want := New(), standard.New()
	_, _ = h.Write([]byte("Fairway"))
	_, _ = want.Write([]byte("Fairway"))
	if got := h.Sum([]byte("x")); !bytes.Equal(got, want.Sum([]byte("x"))) {
		t.Errorf("Sum: %x instead of %x", got, want.Sum([]byte("x")))
	}
	h.Reset()
	if h.Sum32() != 1 {
		t.Errorf("the sum of nothing is %d", h.Sum32())
	}
}

func FuzzSum(f *testing.F) {
	f.Add([]byte("Fairway"), 3)
	f.Fuzz(func(t *testing.T, data []byte, piece int) { check(t, "fuzz", data, max(piece, 1)) })
}

func BenchmarkSum(b *testing.B) {
	data := make([]byte, 256<<10)
	b.Run("standard", func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		for range b.N {
			standard.Checksum(data)
		}
	})
	ours := func(b *testing.B) {
		b.SetBytes(int64(len(data)))
		h := New()
		for range b.N {
			_, _ = h.Write(data)
		}
	}
	b.Run("wide", ours)
	defer func(was bool) { wide = was }(wide)
	wide = false
	b.Run("lanes", ours)
}
