// Package logical knows what logical file names (LFNs) may be, and which of them a pattern
// means, for all who read or make them. It has no state.
//
// A name that ends in a slash is that of a folder, which is kept as one file.
package logical

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const (
	// MaxName bounds a name, in bytes.
	MaxName = 1024
	// MaxPart bounds a part of the name of an output, in bytes: file systems allow 255,
	// and where an output is stored its version and attempt stand behind it.
	MaxPart = 200
	// maxFile bounds a part of any name, in bytes, as file systems do.
	maxFile = 255
)

// CountFolder is where jobs write that count the records of a file: the number is the
// name of an empty file, so that it is known with the commit.
const CountFolder = "_records/"

// FolderSuffix is what a folder has behind its name where it is one file: the archive that holds it.
const FolderSuffix = ".zip"

// IsFolder reports whether a name stands for a folder.
func IsFolder(name string) bool { return strings.HasSuffix(name, "/") }

// Path is where a command finds what has a name.
func Path(name string) string { return strings.TrimSuffix(name, "/") }

// WhyNot says why a text cannot be a name, or "".
func WhyNot(name string) string {
	name = Path(name)
	switch {
	case name == "":
		return "is empty"
	case strings.HasPrefix(name, "/"):
		return "starts with '/'"
	case strings.ContainsAny(name, "\x00\n"):
		return "contains a line break or a zero byte"
	case !utf8.ValidString(name):
		return "is not UTF-8"
	case len(name) > MaxName:
		return fmt.Sprintf("is longer than %d bytes", MaxName)
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == "" || part == "." || part == ".." {
			return fmt.Sprintf("has the part %q", part)
		}
		if len(part) > maxFile {
			return fmt.Sprintf("has a part of %d bytes, and a file can have %d", len(part), maxFile)
		}
	}
	return ""
}

// LongPart is the first part of a name that is longer than MaxPart, or "".
func LongPart(name string) string {
	for part := range strings.SplitSeq(name, "/") {
		if len(part) > MaxPart {
			return part
		}
	}
	return ""
}

// few is up to how many names a search through all of them is faster than a map.
const few = 16

// Unique leaves each name where it first stands in a list, which it changes.
func Unique(names []string) []string {
	if len(names) <= few {
		kept := names[:0]
		for _, name := range names {
			if !slices.Contains(kept, name) {
				kept = append(kept, name)
			}
		}
		return kept
	}
	seen := make(map[string]bool, len(names))
	return slices.DeleteFunc(names, func(name string) bool {
		again := seen[name]
		seen[name] = true
		return again
	})
}

// A pattern stands for names: '*' in it for any characters but '/', a backslash for the
// character behind it, everything else for itself. What takes a text as a pattern has been
// told that it is one: names may have all of these characters.

var escapes = strings.NewReplacer(`*`, `\*`, `\`, `\\`)

// Escape is the pattern that stands for one name alone.
func Escape(name string) string { return escapes.Replace(name) }

// Unescape is a pattern as a shell is given it: each character of a value is itself there, also
// a '*'.
func Unescape(pattern string) string {
	if strings.IndexByte(pattern, '\\') < 0 {
		return pattern
	}
	var name strings.Builder
	for i := 0; i < len(pattern); i++ {
		if pattern[i] == '\\' && i+1 < len(pattern) {
			i++
		}
		name.WriteByte(pattern[i])
	}
	return name.String()
}

// Star is where the first '*' of a pattern stands that is none of a name, -1 without one.
func Star(pattern string) int {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '*':
			return i
		}
	}
	return -1
}

// Above is the folder in which all that a pattern stands for is found, "" for the folder in
// which the names themselves are.
func Above(pattern string) string {
	fixed := pattern
	if star := Star(pattern); star >= 0 {
		fixed = pattern[:star]
	}
	return Unescape(fixed[:max(0, strings.LastIndexByte(fixed, '/'))])
}

// Matches reports whether a pattern stands for a name, or a PFN.
func Matches(pattern, name string) bool {
	star, mark := -1, 0 // the last '*', and where what it stands for ends
	p, n := 0, 0
	for n < len(name) {
		at := p // of the character that p stands for
		if p+1 < len(pattern) && pattern[p] == '\\' {
			at++
		}
		switch {
		case at == p && p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case at < len(pattern) && pattern[at] == name[n]:
			p = at + 1
			n++
		case star >= 0 && name[mark] != '/':
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// Forms of texts that say what a file or folder holds, of which somebody has read all. They stand before
// a hash.
const (
	SHA256Of = "sha256-"
	BLAKE3Of = "blake3-"
	FolderOf = "folder-"
)

// TellsContents reports whether a text says what a file or folder holds, and not only when it was written
// and how large it is.
func TellsContents(text string) bool {
	return strings.HasPrefix(text, SHA256Of) || strings.HasPrefix(text, BLAKE3Of) || strings.HasPrefix(text, FolderOf)
}

// Known is what keys of results know a file by that no job has made: its LFN and a text that says what
// it holds.
func Known(lfn, contents string) [16]byte {
	var b []byte
	for _, part := range [...]string{"existing", lfn, contents} {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(part))), part...)
	}
	sum := sha256.Sum256(b)
	return [16]byte(sum[:16])
}
