package pilot

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"fairway/internal/wire"
)

// A name that is not UTF-8 in what a pilot tells would have every Sync refused.
func TestNameInAnotherEncodingReachesTheTaskQueue(t *testing.T) {
	q := watching(t, WatchAll)
	data := oldFile(t, filepath.Join(q.folder, "caf\xe9.csv"), "text")
	want := filepath.Join(q.folder, `caf\xe9.csv`)
	r := q.run("p1", shell("cat "+filepath.Dir(data)+"/caf*.csv"))
	if notes := strings.Join(r.GetNotes(), "; "); !strings.Contains(notes, "it opened "+want) {
		t.Error(notes)
	}
	expect(t, q.run("p1", shell(`printf 'caf\351: No such file or directory' >&2; exit 3`)), wire.Outcome_OUTCOME_EXITED, "")
	expect(t, q.run("p1", shell(`: > "$(printf 'p\351')"`, writes("*"))), wire.Outcome_OUTCOME_STAGE_OUT_FAILED, `"p\xe9" is not UTF-8`)
	expect(t, q.run("p1", shell("true")), wire.Outcome_OUTCOME_SUCCEEDED, "")
}

func TestConfigOfAFolderInAnotherEncodingIsRefused(t *testing.T) {
	c := Config{SandboxDir: "/home/caf\xe9/.fairway/sandbox"}
	if _, err := c.Encode(); err == nil || !strings.Contains(err.Error(), `caf\xe9`) {
		t.Error(err)
	}
}

// FuzzSendable shows that any text may get into a result.
func FuzzSendable(f *testing.F) {
	f.Add("caf\xe9\x1b[31m", "note", "lfn", "/pfn")
	f.Add(strings.Repeat("\xff", 2*maxMessage), strings.Repeat("é", maxMessage), "l\xff", "p")
	f.Fuzz(func(t *testing.T, message, note, lfn, pfn string) {
		r := &wire.Result{Message: message, Outputs: []*wire.WrittenFile{{Lfn: lfn, Pfn: pfn}}}
		for range maxNotes + 5 {
			r.Notes = append(r.Notes, note)
		}
		makeSendable(r)
		if _, err := proto.Marshal(r); err != nil {
			t.Error(err)
		}
		if len(r.GetNotes()) > maxNotes {
			t.Error(len(r.GetNotes()), "notes")
		}
		for _, text := range append(r.GetNotes(), r.GetMessage()) {
			if len(text) > maxMessage+len("...") {
				t.Errorf("%d bytes", len(text))
			}
		}
		if utf8.ValidString(message) && len(message) <= maxMessage && utf8.ValidString(lfn+pfn) && r.GetMessage() != message {
			t.Errorf("%q became %q", message, r.GetMessage())
		}
	})
}

func TestLegible(t *testing.T) {
	for text, want := range map[string]string{"": "", "é": "é", "caf\xe9.csv": `caf\xe9.csv`, "\xff\xfe": `\xff\xfe`, "\xed\xa0\x80": `\xed\xa0\x80`, "�": "�"} {
		if got := legible(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
