package xrootd

import (
	"strings"
	"testing"
)

// Whatever xrdfs prints, a size is one, and a name is one of the folder.
func FuzzStat(f *testing.F) {
	f.Add("Path:   /store/x\nId:     123\nSize:   5\nMTime:  2026-11-22 10:00:00\nFlags:  16 (IsReadable)")
	f.Add("Size: 0\nFlags: 19 (XBitSet|IsDir|IsReadable)")
	f.Fuzz(func(t *testing.T, text string) {
		if info, _, err := parseStat(text); err == nil && info.Size < 0 {
			t.Fatalf("%q: %+v", text, info)
		}
	})
}

// See FuzzStat.
func FuzzList(f *testing.F) {
	f.Add("-r-- 2026-11-22 10:00:00           5 /store/a b\ndr-x 2026-11-22 10:00:00        4096 /store/run1", "/store")
	f.Add("-r-- 2026-11-22 10:00:00           5 /store/..\n-r-- 5 /store/.", "/store/")
	f.Fuzz(func(t *testing.T, text, folder string) {
		for _, e := range parseList(text, folder) {
			if e.Name == "" || e.Name == "." || e.Name == ".." || strings.ContainsAny(e.Name, "/\n\x00") {
				t.Fatalf("%q is listed in %q", e.Name, folder)
			}
		}
	})
}

// See FuzzStat.
func FuzzChecksum(f *testing.F) {
	f.Add("adler32 0a1b2c3d\n")
	f.Fuzz(func(t *testing.T, text string) {
		if sum := parseChecksum(text); sum.Hash() != nil && len(sum.Value) == 0 {
			t.Fatalf("%q: %+v", text, sum)
		}
	})
}
