package stage

import (
	"strings"
	"testing"

	"fairway/internal/cache"
)

func TestHintAtNamesWithSpaces(t *testing.T) {
	in := &Inputs{files: []*input{named("up/a b.txt"), named("up/c.txt")}}
	for said, hints := range map[string]bool{
		"cat: up/a: No such file or directory\ncat: b.txt: No such file or directory": true,
		"wc: 'up/a': No such file or directory":                                       true,
		"cat: backup/a: No such file or directory":                                    false,
		"cat: up/c.txt: No such file or directory":                                    false,
	} {
		if got := in.MissedFile(said); strings.Contains(got, `"up/a b.txt" has spaces`) != hints {
			t.Errorf("%s: %q", said, got)
		}
	}
}

func named(lfn string) *input { return &input{Item: cache.Item{Ref: cache.Ref{LFN: lfn}}} }
