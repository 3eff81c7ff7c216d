package report

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"fairway/internal/access"
	"fairway/internal/wire"
)

// What a person is told of an attempt is bounded: maxMessage for one line, in
// bytes, and maxNotes lines.
const (
	maxMessage = 500
	maxNotes   = 20
)

// LastLine is what a person is told of what a program printed.
func LastLine(text string) string {
	text = strings.TrimRight(text, " \n\r\t")
	return Clip(text[strings.LastIndexByte(text, '\n')+1:])
}

// FirstLine is what a person is told of an error.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimLeft(text, " \n\r\t"), "\n")
	return Clip(line)
}

// Clip makes a line one that can be sent: valid UTF-8, and not too long.
func Clip(line string) string {
	line = Legible(line)
	if len(line) <= maxMessage {
		return line
	}
	end := maxMessage
	for !utf8.RuneStart(line[end]) {
		end--
	}
	return line[:end] + "..."
}

// Legible shows the bytes that are not UTF-8, such as those of a name in another
// encoding, by their numbers.
func Legible(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&b, `\x%02x`, text[0])
		} else {
			b.WriteString(text[:size])
		}
		text = text[size:]
	}
	return b.String()
}

// makeSendable sees to it that the TaskQueue can read a result, whatever texts of
// programs and files have got into it: a message with one text that is not UTF-8
// is refused as a whole, and so would every later one be that carries it.
func makeSendable(r *wire.Result) {
	r.Message = Clip(r.GetMessage())
	if more := len(r.GetNotes()) - maxNotes; more > 0 {
		r.Notes = append(r.Notes[:maxNotes-1], fmt.Sprintf("%d more notes are left out", more+1))
	}
	for i, note := range r.GetNotes() {
		r.Notes[i] = Clip(note)
	}
	for _, l := range r.GetLost() {
		l.Why = Clip(l.GetWhy())
	}
	if len(r.GetOutputs()) > access.MaxOutputs || proto.Size(r) > MaxReported {
		r.Message = fmt.Sprintf("it wrote %d files, more than can be told of one attempt; pack them into fewer",
			len(r.GetOutputs()))
		r.Outcome, r.Outputs = wire.Outcome_OUTCOME_STAGE_OUT_FAILED, nil
		return
	}
	for _, o := range r.GetOutputs() {
		if !utf8.ValidString(o.GetLfn()) || !utf8.ValidString(o.GetPfn()) {
			r.Outcome, r.Outputs = wire.Outcome_OUTCOME_STAGE_OUT_FAILED, nil
			r.Message = Clip(fmt.Sprintf("the name %q is not UTF-8, so it cannot be recorded", o.GetPfn()))
			return
		}
	}
}
