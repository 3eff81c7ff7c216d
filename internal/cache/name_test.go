package cache

import "testing"

// The names of files stay what they are: a later version of Fairway finds what an earlier one kept.
func TestNamesOfFiles(t *testing.T) {
	const tag = "@1@0000000000000007@"
	for lfn, want := range map[string]string{
		"azAZ09-_+=,.": "azAZ09-_+=,.", ".hidden": "%2Ehidden", "a/b c": "a%2Fb%20c", "@[`{/:": "%40%5B%60%7B%2F%3A",
		"é": "%C3%A9", "": "", "\x7f%": "%7F%25",
	} {
		for size, digits := range map[int64]string{0: "0", 10: "10"} {
			i := Item{Ref{LFN: lfn, Version: 1, Tag: 7}, size}
			name := fileName(i)
			if name != want+tag+digits {
				t.Errorf("%q of %d bytes is %s", lfn, size, name)
			}
			if back, ok := parseName(name); !ok || back != i {
				t.Errorf("%s is %+v, %v", name, back, ok)
			}
		}
	}
	if name := fileName(Item{Ref{"a", 1<<32 - 1, 0x0123456789ABCDEF}, 1<<63 - 1}); name !=
		"a@4294967295@0123456789ABCDEF@9223372036854775807" {
		t.Error(name)
	}
	for _, name := range []string{
		"a", "a@1@0000000000000007", "a@1@0000000000000007@5@", "a@4294967296@0000000000000007@5", "a@1@7@5",
		"a@1@000000000000000g@5", "a@1@0000000000000007@-1", "a@1@0000000000000007@x", "a%@1@0000000000000007@5",
		"a%4@1@0000000000000007@5", "%4@1@0000000000000007@5", "a%4x@1@0000000000000007@5", "a%41@1@0000000000000007@5",
		"a%2f@1@0000000000000007@5", "a%FF@1@0000000000000007@5", ".a@1@0000000000000007@5",
	} {
		if i, ok := parseName(name); ok {
			t.Errorf("%s is taken for %+v", name, i)
		}
	}
}

// What bears no name of a cache is somebody else's.
func TestNamesOfACache(t *testing.T) {
	for name, want := range map[string]bool{
		"a@1@0000000000000007@5": true, "a@0@6@4294967297": false, "a@1@g@5": false, "a@1a@7@5": false, "a@1@7@1a": false,
		"a@1@7": false, "thesis.tex": false, lockName: true, changesName: true, usesName: true, trustName: true,
		partsName:        true,
		partOf("1", "a"): true, dropOf("a"): true, ".new": false, ".profile": false,
	} {
		if got := isOfCache(name); got != want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
