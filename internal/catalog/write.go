package catalog

import (
	"bytes"
	"encoding/xml"
	"io"
	"regexp"
)

// Entry is where one file is found.
type Entry struct {
	LFN string
	PFN string
}

// Protocol is that of the rules that Write makes.
const Protocol = "direct"

// Write writes a storage.xml for the inputs of one attempt: the files that are
// in the cache first, then those on a storage element, one rule for each, so
// that a program that takes the first match reads the cached file (paper 3,
// section IV). Slashes before an LFN don't matter.
//
// A "$" before a digit in a PFN stands for itself by the rules of this
// package, since the patterns have no groups.
func Write(w io.Writer, cached, stored []Entry) error {
	var b bytes.Buffer
	b.WriteString("<storage-mapping>\n")
	for _, entries := range [][]Entry{cached, stored} {
		for _, e := range entries {
			b.WriteString("  <lfn-to-pfn protocol=\"" + Protocol + "\" path-match=\"")
			escape(&b, "/*"+regexp.QuoteMeta(trimSlashes(e.LFN)))
			b.WriteString("\" result=\"")
			escape(&b, e.PFN)
			b.WriteString("\"/>\n")
		}
	}
	b.WriteString("</storage-mapping>\n")
	_, err := w.Write(b.Bytes())
	return err
}

func trimSlashes(lfn string) string {
	for lfn != "" && lfn[0] == '/' {
		lfn = lfn[1:]
	}
	return lfn
}

// escape writes into memory, which does not fail.
func escape(b *bytes.Buffer, s string) { _ = xml.EscapeText(b, []byte(s)) }
