package flow

import (
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
)

// LFN gives the logical name of a path (relative as in Patterns), or of a URL
// of a URL list. fits is false for a path that no pattern fits: it is no file
// of this input. An error means that the name would be illegal.
func (in *DeclaredInput) LFN(file string) (lfn string, fits bool, err error) {
	if in.URLList != "" {
		if file, err = urlBase(file); err != nil {
			return "", false, err
		}
	}
	for i, p := range in.patterns {
		values, fits := p.match(file)
		if !fits {
			continue
		}
		lfn := path.Base(file)
		if in.renamed {
			lfn, _ = in.names[i].expand(values)
		}
		if why := legalLFN(lfn); why != "" {
			return "", false, fmt.Errorf("%q would be named %q, which %s", file, lfn, why)
		}
		return lfn, true, nil
	}
	return "", false, nil
}

func urlBase(text string) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	if err != nil {
		return "", fmt.Errorf("read the URL %q: %w", text, err)
	}
	return path.Base(u.Path), nil
}

// Order sorts paths of one enumeration into the order in which they are to
// arrive: by pattern, and then so that numbers in names count as numbers. A
// path that comes twice is kept once.
func (in *DeclaredInput) Order(paths []string) []string {
	rank := func(file string) int {
		return slices.IndexFunc(in.patterns, func(p *pattern) bool { _, fits := p.match(file); return fits })
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
		b := binding{}
		for _, name := range p.names {
			value, given := values[name]
			if !placeholderName.MatchString(name) {
				value, given = values[wildcard]
			}
			if b[name] = value; !given {
				b[name] = "1"
			}
		}
		file, _ := p.expand(b)
		lfn := path.Base(file)
		if in.renamed {
			lfn, _ = in.names[i].expand(b)
		}
		lfns = append(lfns, lfn)
	}
	return lfns
}
