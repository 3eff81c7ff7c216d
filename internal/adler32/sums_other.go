//go:build !amd64

package adler32

var wide = false

func sums(*byte, int) (total, before, weighted uint64) { panic("no processor of this kind is wide") }
