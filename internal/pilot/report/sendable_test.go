package report

import (
	"strings"
	"testing"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"fairway/internal/access"
	"fairway/internal/wire"
)

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
		if utf8.ValidString(message) && len(message) <= maxMessage && utf8.ValidString(lfn) && utf8.ValidString(pfn) &&
			r.GetMessage() != message {
			t.Errorf("%q became %q", message, r.GetMessage())
		}
	})
}

// A result of more files than the TaskQueue reads would be refused for ever.
func TestMoreFilesThanCanBeToldAreAFailure(t *testing.T) {
	many := &wire.Result{Outputs: make([]*wire.WrittenFile, access.MaxOutputs+1)}
	makeSendable(many)
	if many.GetOutcome() != wire.Outcome_OUTCOME_STAGE_OUT_FAILED ||
		!strings.Contains(many.GetMessage(), "pack them into fewer") || many.GetOutputs() != nil {
		t.Error(many.GetOutcome(), many.GetMessage(), len(many.GetOutputs()))
	}
}

func TestLegible(t *testing.T) {
	for text, want := range map[string]string{
		"":             "",
		"é":            "é",
		"caf\xe9.csv":  `caf\xe9.csv`,
		"\xff\xfe":     `\xff\xfe`,
		"\xed\xa0\x80": `\xed\xa0\x80`,
		"�":            "�",
	} {
		if got := Legible(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
