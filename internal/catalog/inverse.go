package catalog

import (
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
)

// maxInverse bounds the rules that are tried for one physical name.
const maxInverse = 10_000

// LFN translates a physical name of a protocol back. The rules for that direction
// (pfn-to-lfn of a storage.xml) come first; then those for the other direction are
// turned round. What comes out by these has the physical name that was given: PFN of
// it is pfn. It begins with one slash where the rules take any number. The error
// wraps ErrNoRule where no rule leads there, or one that forgets a part of the name.
func (c *Catalog) LFN(protocol, pfn string) (string, error) {
	if lfn, ok := c.back(protocol, pfn, MaxChain); ok {
		return lfn, nil
	}
	tries := maxInverse
	right := func(lfn string) bool {
		again, err := c.PFN(protocol, lfn)
		return err == nil && again == pfn
	}
	if lfn, ok := c.invert(protocol, pfn, MaxChain, &tries, right); ok {
		return lfn, nil
	}
	return "", fmt.Errorf("%s, protocol %s, back: %w", pfn, protocol, ErrNoRule)
}

// back uses the rules for this direction. A rule with a chain is applied first, and
// the chained protocol to what comes out.
func (c *Catalog) back(protocol, name string, depth int) (string, bool) {
	if depth == 0 {
		return "", false
	}
	for _, r := range c.backward[protocol] {
		if translated, ok := r.apply(name); ok {
			if r.chain == "" {
				return translated, true
			}
			return c.back(r.chain, translated, depth-1)
		}
	}
	return "", false
}

// invert finds a name that the rules of a protocol may have translated into this one,
// and that is right.
func (c *Catalog) invert(protocol, name string, depth int, tries *int, right func(string) bool) (string, bool) {
	for i := range c.rules[protocol] {
		r := &c.rules[protocol][i]
		inverse := r.inverse()
		for _, matcher := range inverse.matchers {
			if *tries--; depth == 0 || *tries < 0 {
				return "", false
			}
			before, ok := inverse.apply(matcher, name)
			if ok && r.chain != "" {
				before, ok = c.invert(r.chain, before, depth-1, tries, right)
			} else if ok {
				ok = right(before)
			}
			if ok {
				return before, true
			}
		}
	}
	return "", false
}

// inverse is what turns a rule round.
type inverse struct {
	// matchers find the groups of the rule in what it has made. Of several groups the first
	// is long by one, and short by the other.
	matchers []*regexp.Regexp
	numbers  []int // of the groups, in the order of the result
	pattern  *syntax.Regexp
}

func (r rule) invertible() rule {
	r.inverse = sync.OnceValue(func() *inverse { return newInverse(&r) })
	return r
}

// newInverse has no matchers where a rule cannot be turned round.
func newInverse(r *rule) *inverse {
	texts := []string{r.prefix} // between the groups
	var numbers []int
	for rest := r.result; ; {
		before, after, ok := strings.Cut(rest, "$")
		texts[len(texts)-1] += before
		if !ok {
			break
		}
		if after != "" && after[0] >= '1' && after[0] <= '9' && int(after[0]-'0') <= r.match.NumSubexp() {
			numbers = append(numbers, int(after[0]-'0'))
			texts = append(texts, "")
			after = after[1:]
		} else {
			texts[len(texts)-1] += "$"
		}
		rest = after
	}
	pattern, err := syntax.Parse(r.match.String(), syntax.Perl)
	if err != nil {
		return new(inverse)
	}
	for i, text := range texts {
		texts[i] = regexp.QuoteMeta(text)
	}
	inverted := &inverse{numbers: numbers, pattern: pattern}
	groups := []string{"(.*)", "(.*?)"}
	for _, group := range groups[:min(len(groups), max(1, len(numbers)))] {
		matcher, err := regexp.Compile("^(?s:" + strings.Join(texts, group) + ")$")
		if err != nil {
			return new(inverse)
		}
		inverted.matchers = append(inverted.matchers, matcher)
	}
	return inverted
}

// apply gives the simplest name that the rule may have made into this one: nothing for
// what may be left out, one of what may be repeated.
func (i *inverse) apply(matcher *regexp.Regexp, name string) (string, bool) {
	found := matcher.FindStringSubmatch(name)
	if found == nil {
		return "", false
	}
	groups := map[int]string{}
	for at, number := range i.numbers {
		groups[number] = found[at+1]
	}
	return example(i.pattern, groups)
}

// example is a text that a pattern may match, in which groups have these values.
func example(p *syntax.Regexp, groups map[int]string) (string, bool) {
	switch p.Op {
	case syntax.OpLiteral:
		return string(p.Rune), true
	case syntax.OpCapture:
		if value, ok := groups[p.Cap]; ok {
			return value, true
		}
		return example(p.Sub[0], groups)
	case syntax.OpConcat:
		var b strings.Builder
		for _, part := range p.Sub {
			text, ok := example(part, groups)
			if !ok {
				return "", false
			}
			b.WriteString(text)
		}
		return b.String(), true
	case syntax.OpAlternate, syntax.OpPlus:
		return example(p.Sub[0], groups)
	case syntax.OpStar:
		if one := p.Sub[0]; one.Op == syntax.OpLiteral && string(one.Rune) == "/" {
			return "/", true
		}
		return "", true
	case syntax.OpBeginText, syntax.OpEndText, syntax.OpBeginLine, syntax.OpEndLine, syntax.OpEmptyMatch, syntax.OpQuest:
		return "", true
	}
	return "", false
}
