package adler32

import "golang.org/x/sys/cpu"

// wide is false in tests of processors without AVX2.
var wide = cpu.X86.HasAVX2

// sums adds up pieces of pieceSize bytes: all bytes, what all before a piece are for each piece,
// and the bytes of each piece with the weights that they have in it. There are 1 to mostPieces.
//
//go:noescape
func sums(p *byte, pieces int) (total, before, weighted uint64)
