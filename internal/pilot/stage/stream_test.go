package stage

import (
	"context"
	"errors"
	"fairway/internal/storage"
	"fairway/internal/wire"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// A command is told where its streamed inputs are, as far as the kernel takes that.
func TestVariablesOfStreamedInputs(t *testing.T) {
	long := strings.Repeat("x", maxVariable)
	for _, c := range []struct {
		url, lfn, want string // a part of the error; "": there is none
	}{
		{"https://se/a", "a", ""}, {"", "a", ""}, {"https://se/a", "b", "names b, which is no input"}, {long, "a", ""},
		{long + "x", "a", "which is too much"},
	} {
		i := named("a")
		i.path, i.url = "a", c.url
		in := &Inputs{files: []*input{i}, attempt: &Execution{Payload: &wire.Payload{
			InputVariables: []*wire.InputVariable{{Name: "in", Lfns: []string{c.lfn}}},
		}}}
		got, err := in.Variables()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %.100v, want %q", err, c.want)
		}
		if err == nil && (len(got) != 1 || got["in"] != i.shown()) {
			t.Errorf("it has %.100v", got)
		}
	}
}

// Of what a program has printed the secrets of URLs are left out, and nothing else.
func TestSecretsOfURLsAreLeftOut(t *testing.T) {
	plain, public, signed := named("a"), named("b"), named("c")
	public.url, signed.url = "https://se/b", "https://se/c?X-Signature=0123456789abcdef&part=2"
	in := &Inputs{files: []*input{plain, public, signed}}
	for said, want := range map[string]string{
		"what? this":     "what? this",
		"https://se/b?x": "https://se/b?x",
		"get https://se/c?X-Signature=0123 failed": "get https://se/c failed",
		"signature 0123456789abcdef, part 2":       "signature ..., part 2",
	} {
		if got := in.Redacted(said); got != want {
			t.Errorf("%q became %q", said, got)
		}
	}
	if got := (*Inputs)(nil).Redacted("x?y"); got != "x?y" {
		t.Error("without inputs it became", got)
	}
}

// stated is an element that tells the state of its files, and nothing else.
type stated struct {
	storage.Element
	info storage.Info
	err  error
}

func (s stated) Stat(context.Context, string) (storage.Info, error) { return s.info, s.err }

// What is streamed is the file that the job is to read: one that is gone, or another one, is told of;
// and where nothing can be told, that.
func TestStreamedInputsAreCompared(t *testing.T) {
	const pfn = "https://se/x"
	now := storage.Info{Size: 4, ModTime: time.Unix(1_700_000_000, 0)}
	other := now
	other.Size = 5
	unknown := now
	unknown.Size = -1
	tag := storage.TagOf(pfn, now)
	if !storage.TellsState(tag) {
		t.Fatal("the state of the file tells nothing")
	}
	away := errors.New("away")
	for _, c := range []struct {
		what    string
		made    bool
		far     bool
		there   stated
		outcome wire.Outcome // 0: it is the same, or nothing is known
		why     bool
	}{
		{"the same", false, false, stated{info: now}, 0, false},
		{"another one", false, false, stated{info: other}, wire.Outcome_OUTCOME_INPUT_CHANGED, false},
		{"gone", false, false, stated{err: os.ErrNotExist}, wire.Outcome_OUTCOME_INPUT_CHANGED, false},
		{"away", false, false, stated{err: away}, 0, true},
		{"an output", true, false, stated{info: now}, 0, false},
		{"an output of another size", true, false, stated{info: other}, wire.Outcome_OUTCOME_INPUT_LOST, false},
		{"an output of a size that nobody knows", true, false, stated{info: unknown}, 0, false},
		{"an output that is gone", true, false, stated{err: os.ErrNotExist}, wire.Outcome_OUTCOME_INPUT_LOST, false},
		{"an output that is away", true, false, stated{err: away}, 0, true},
		{"out of reach", false, true, stated{info: now}, 0, true},
	} {
		ar := linkingArea(t)
		ar.Storage = c.there
		if c.far {
			ar.Reach = &Reach{far: map[string]bool{storage.ServerOf(pfn): true}}
		}
		f := &wire.InputFile{File: &wire.FileRef{Lfn: "x", Tag: tag}, Pfn: pfn, Size: 4, Access: wire.Access_ACCESS_STREAM}
		if c.made {
			f.File.Version, f.File.Tag, f.Adler32 = 1, 1<<32+7, 5
		}
		changed, why := ar.sameStored(t.Context(), newInput(f))
		if outcome, _ := OutcomeOf(changed, 0); outcome != c.outcome || (why != nil) != c.why {
			t.Errorf("%s: changed %v, why %v", c.what, changed, why)
		}
		if c.outcome == 0 {
			continue
		}
		in := NewInputs(ar, &Execution{Assignment: &wire.Assignment{}, Ctx: t.Context()})
		if err := in.stream(newInput(f), filepath.Join(t.TempDir(), "x")); err == nil {
			t.Errorf("%s, and its command begins", c.what)
		}
	}
}
