package workflow

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"fairway/internal/flow/pattern"
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
	at, values, err := pattern.ReadFirst(in.Paths, file)
	if err != nil || at < 0 {
		return "", false, err
	}
	lfn = baseOf(file)
	if in.renamed {
		lfn, _ = in.Names[at].Expand(values)
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

// Values gives the maker of an arrived file and the values that it carries.
func (in *DeclaredInput) Values(lfn, path string) (*Maker, pattern.Binding, error) {
	patterns, name := in.Names, lfn
	if path != "" {
		patterns = in.Paths
		var err error
		if name, err = in.matched(path); err != nil {
			return nil, nil, err
		}
	}
	at, values, err := pattern.ReadFirst(patterns, name)
	if err != nil || at < 0 {
		return nil, nil, err
	}
	return in.makers[at], values.Of(in.Names[at].Names), nil
}

// Order sorts paths of one enumeration into the order in which they are to
// arrive: by pattern, and then so that numbers in names count as numbers. A
// path that comes twice is kept once.
func (in *DeclaredInput) Order(paths []string) []string {
	rank := func(file string) int {
		return slices.IndexFunc(in.Paths, func(p *pattern.Pattern) bool { return p.Fits(file) })
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
		return pattern.Natural(a, b)
	})
	return slices.Compact(sorted)
}

// Placeholders are the names that the paths bind, in the order in which they
// appear; "*" stands for the wildcards, if there are any.
func (in *DeclaredInput) Placeholders() []string {
	var names []string
	for _, p := range in.Paths {
		for _, name := range p.Names {
			if !pattern.PlaceholderName.MatchString(name) {
				name = pattern.Wildcard
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// Named gives the LFNs, one for each pattern, of imagined files whose
// [DeclaredInput.Placeholders] have these values; what has none is 1.
func (in *DeclaredInput) Named(values map[string]string) []string {
	var lfns []string
	for i, p := range in.Paths {
		lfn := baseOf(p.Imagine(values))
		if in.renamed {
			lfn = in.Names[i].Imagine(values)
		}
		lfns = append(lfns, lfn)
	}
	return lfns
}
