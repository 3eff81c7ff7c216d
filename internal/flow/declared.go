package flow

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"fairway/internal/logical"
)

// LFN gives the logical name of a path (relative as in Patterns), or of a line
// of a URL list. fits is false for a path that no pattern fits: it is no file
// of this input. An error means that the name would be illegal, or that the
// pattern can be read in two ways.
func (in *DeclaredInput) LFN(file string) (lfn string, fits bool, err error) {
	file, err = in.matched(file)
	if err != nil {
		return "", false, err
	}
	at, values, err := readFirst(in.patterns, file)
	if err != nil || at < 0 {
		return "", false, err
	}
	lfn = baseOf(file)
	if in.renamed {
		lfn, _ = in.names[at].expand(values)
	}
	if why := logical.WhyNot(lfn); why != "" {
		return "", false, fmt.Errorf("%q would be named %q, which %s", file, lfn, why)
	}
	return lfn, true, nil
}

// baseOf is the last part of a path, with the slash of a folder.
func baseOf(file string) string {
	if logical.IsFolder(file) {
		return path.Base(file) + "/"
	}
	return path.Base(file)
}

// matched is the part of a path, or of a line of a URL list, that patterns are
// compared with.
func (in *DeclaredInput) matched(file string) (string, error) {
	if in.URLList == "" {
		return file, nil
	}
	line := strings.TrimSpace(file)
	if !IsURL(line) {
		return path.Base(line), nil
	}
	u, err := url.Parse(line)
	if err != nil {
		return "", fmt.Errorf("read the URL %q: %w", line, err)
	}
	return path.Base(u.Path), nil
}

var scheme = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+-]*://`)

// IsURL reports whether a line of a list is a URL, and no path or logical name, in which '#',
// '?' and '%' are characters like others. A URL of the scheme file is a path.
func IsURL(line string) bool {
	return scheme.MatchString(line) && !strings.EqualFold(line[:5], "file:")
}

// values gives the maker of an arrived file and the values that it carries.
func (in *DeclaredInput) values(file InputFile) (*maker, binding, error) {
	patterns, name := in.names, file.LFN
	if file.Path != "" {
		patterns = in.patterns
		var err error
		if name, err = in.matched(file.Path); err != nil {
			return nil, nil, err
		}
	}
	at, values, err := readFirst(patterns, name)
	if err != nil || at < 0 {
		return nil, nil, err
	}
	return in.makers[at], values.of(in.names[at].names), nil
}

// readFirst reads a name by the first pattern that it fits; -1 if there is none.
func readFirst(patterns []*pattern, name string) (at int, values binding, err error) {
	for i, p := range patterns {
		first, second := p.read(name, nil, nil)
		if second != nil {
			return -1, nil, fmt.Errorf("%s; give the file another name, or write a pattern that leaves one way",
				twoReadings(name, p, first, second))
		}
		if first != nil {
			return i, first, nil
		}
	}
	return -1, nil, nil
}

// Order sorts paths of one enumeration into the order in which they are to
// arrive: by pattern, and then so that numbers in names count as numbers. A
// path that comes twice is kept once.
func (in *DeclaredInput) Order(paths []string) []string {
	rank := func(file string) int {
		return slices.IndexFunc(in.patterns, func(p *pattern) bool { return p.fits(file) })
	}
	sorted := slices.Clone(paths)
	ranks := make(map[string]int, len(sorted))
	for _, file := range sorted {
		ranks[file] = rank(file)
	}
	slices.SortFunc(sorted, func(a, b string) int {
		if ranks[a] != ranks[b] {
			return ranks[a] - ranks[b]
		}
		return natural(a, b)
	})
	return slices.Compact(sorted)
}

// Placeholders are the names that the paths bind, in the order in which they
// appear; "*" stands for the wildcards, if there are any.
func (in *DeclaredInput) Placeholders() []string {
	var names []string
	for _, p := range in.patterns {
		for _, name := range p.names {
			if !placeholderName.MatchString(name) {
				name = wildcard
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// wildcard is what Placeholders and Named call all wildcards together.
const wildcard = "*"

// Named gives the LFNs, one for each pattern, of imagined files whose
// [DeclaredInput.Placeholders] have these values; what has none is 1.
func (in *DeclaredInput) Named(values map[string]string) []string {
	var lfns []string
	for i, p := range in.patterns {
		lfn := baseOf(p.imagine(values))
		if in.renamed {
			lfn = in.names[i].imagine(values)
		}
		lfns = append(lfns, lfn)
	}
	return lfns
}

func (p *pattern) imagine(values map[string]string) string {
	var s strings.Builder
	for _, t := range p.tokens {
		name := t.name
		if t.isWildcard() {
			name = wildcard
		}
		value, ok := values[name]
		switch {
		case name == "":
			s.WriteString(t.literal)
		case ok:
			s.WriteString(value)
		default:
			s.WriteByte('1')
		}
	}
	return s.String()
}
