// Package catalog translates logical into physical file names, and back, by the rules
// of a Trivial File Catalog (paper 3, section IV), as sites of CMS keep them:
// storage.xml, and its successor storage.json.
//
// Rules of one protocol are tried in order, and the first that matches wins. A
// rule's pattern must match the whole name; $1 to $9 in its result stand for
// its groups, and are left as they are where the pattern has no such group. A
// rule with a chain first has the name translated by the rules of the chained
// protocol, and is then matched against what came out. At most [MaxChain] rules
// are chained, so that rules that chain in a circle match nothing. A rule that would make
// a name of more than [MaxName] bytes matches nothing either.
//
// Patterns are those of package regexp: expressions with backreferences or
// look-around are refused when the catalog is read. A catalog does not change
// once it is read, and may be used by any goroutine.
package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Limits of a catalog that is read.
const (
	MaxChain = 16      // rules that are chained for one name
	MaxBytes = 4 << 20 // of a catalog file
	MaxName  = 1 << 16 // bytes of a name: each rule of a chain may repeat what the one before made
)

// ErrNoRule says that no rule of a protocol matches a name.
var ErrNoRule = errors.New("no rule matches")

type rule struct {
	match  *regexp.Regexp
	prefix string // goes before the result as it is
	result string
	chain  string

	inverse func() *inverse // computed when it is first needed
}

// Catalog holds the rules of one site and volume.
type Catalog struct {
	rules     map[string][]rule // by protocol
	backward  map[string][]rule // from physical to logical names
	protocols []string
}

func newCatalog() *Catalog {
	return &Catalog{rules: map[string][]rule{}, backward: map[string][]rule{}}
}

// Protocols returns the protocols that have rules, in the order of
// their first rules.
func (c *Catalog) Protocols() []string { return c.protocols }

// PFN translates a logical name for a protocol. The error wraps ErrNoRule if
// there is no matching rule.
func (c *Catalog) PFN(protocol, lfn string) (string, error) {
	if slices.Contains(strings.Split(lfn, "/"), "..") {
		return "", fmt.Errorf("%s: a logical name may have no part \"..\": it would lead out of where the rules of the "+
			"catalogue lead", lfn)
	}
	pfn, ok := c.translate(protocol, lfn, MaxChain)
	if !ok {
		return "", fmt.Errorf("%s, protocol %s: %w", lfn, protocol, ErrNoRule)
	}
	return pfn, nil
}

func (c *Catalog) translate(protocol, name string, depth int) (string, bool) {
	if depth == 0 {
		return "", false
	}
	for _, r := range c.rules[protocol] {
		if !r.match.MatchString(name) {
			continue
		}
		if r.chain == "" {
			return r.apply(name)
		}
		chained, ok := c.translate(r.chain, name, depth-1)
		if !ok {
			return "", false
		}
		return r.apply(chained)
	}
	return "", false
}

func (r *rule) apply(name string) (string, bool) {
	groups := r.match.FindStringSubmatch(name)
	if groups == nil {
		return "", false
	}
	var b strings.Builder
	b.WriteString(r.prefix)
	for rest := r.result; ; {
		before, after, ok := strings.Cut(rest, "$")
		b.WriteString(before)
		if b.Len() > MaxName {
			return "", false
		}
		if !ok {
			return b.String(), true
		}
		if after != "" && after[0] >= '1' && after[0] <= '9' && int(after[0]-'0') < len(groups) {
			b.WriteString(groups[after[0]-'0'])
			after = after[1:]
		} else {
			b.WriteByte('$')
		}
		rest = after
	}
}

// newRule compiles a rule. The pattern may be anchored or not: it must match
// the whole name in any case.
func newRule(pattern, result, chain string) (rule, error) {
	match, err := regexp.Compile(`^(?:` + pattern + `)$`)
	if err != nil {
		return rule{}, fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return rule{match: match, result: result, chain: chain}.invertible(), nil
}

func (c *Catalog) add(protocol string, r rule) {
	if len(c.rules[protocol]) == 0 {
		c.protocols = append(c.protocols, protocol)
	}
	c.rules[protocol] = append(c.rules[protocol], r)
}
