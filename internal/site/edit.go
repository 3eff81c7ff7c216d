package site

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/yamlfile"
)

// Setting is a key with its values, as a person gives it.
type Setting struct {
	Key    string
	Values []string
}

// ExistsError says that a file describes a site of that name already.
type ExistsError struct{ Site *Site }

func (e *ExistsError) Error() string {
	return fmt.Sprintf("%s:%d describes a site %s already", e.Site.File, e.Site.Line, e.Site.Name)
}

// Add appends a site to a file, which is made if need be. What stands there already,
// comments included, stays as it is. A description that is wrong is refused, and the
// file left alone.
func Add(file, name string, settings []Setting) (added *Site, err error) {
	err = edit(file, func(data []byte) (string, error) {
		before, err := parseOrEmpty(file, data)
		if err != nil {
			return "", err
		}
		for _, s := range before {
			if s.Name == name {
				return "", &ExistsError{s}
			}
		}
		description, err := describe(name, settings)
		if err != nil {
			return "", err
		}
		// On its own first, so that what is wrong is told of what the person gave. Others it may name.
		alone := "sites:\n" + description
		for _, s := range before {
			alone += fmt.Sprintf("  %q: {system: slurm, cache: global}\n", s.Name)
		}
		if _, err := Parse("the site", []byte(alone)); err != nil {
			return "", withoutPlaces(err)
		}
		text := string(data)
		if isBlank(data) {
			text += "sites:\n"
		}
		if !strings.HasSuffix(text, "\n") {
			text += endings("\n", text)
		}
		text += endings(description, text)
		added, err = described(file, text, name)
		return text, err
	})
	return added, err
}

// described reads a text that is to stand in a file. It returns the site of a name in it,
// nil where there is none.
func described(file, text, name string) (*Site, error) {
	sites, err := parseOrEmpty(file, []byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s is written in a form that only a person can change (sites indented by two spaces under "+
			"`sites:` can be changed here): %w", file, err)
	}
	for _, s := range sites {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, nil
}

func parseOrEmpty(file string, data []byte) ([]*Site, error) {
	if isBlank(data) {
		return nil, nil
	}
	return Parse(file, data)
}

var plainNumber = regexp.MustCompile(`^[1-9][0-9]{0,8}$`)

func describe(name string, settings []Setting) (string, error) {
	body := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range settings {
		value := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
		for _, v := range s.Values {
			item := &yaml.Node{}
			item.SetString(v)
			if plainNumber.MatchString(v) {
				item.Tag = "!!int" // which needs no quotes
			}
			value.Content = append(value.Content, item)
		}
		if len(s.Values) == 1 {
			value = value.Content[0]
		}
		key := &yaml.Node{}
		key.SetString(s.Key)
		body.Content = append(body.Content, key, value)
	}
	key := &yaml.Node{}
	key.SetString(name)
	var b strings.Builder
	encoder := yaml.NewEncoder(&b)
	encoder.SetIndent(2)
	if err := encoder.Encode(&yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{key, body}}); err != nil {
		return "", err
	}
	var indented strings.Builder
	for line := range strings.Lines(b.String()) {
		indented.WriteString("  " + line)
	}
	return indented.String(), nil
}

// withoutPlaces are the problems of a description that stands in no file yet.
func withoutPlaces(err error) error {
	problems, ok := errors.AsType[yamlfile.Problems](err)
	if !ok {
		return err
	}
	var lines []string
	for _, p := range problems {
		text := p.What
		if p.Instead != "" {
			text += "; " + p.Instead
		}
		lines = append(lines, text)
	}
	return errors.New(strings.Join(lines, "\n"))
}

// Remove takes the description of a site out of its file.
func Remove(s *Site) error {
	if s.File == "" {
		return fmt.Errorf("no file describes the site %s", s.Name)
	}
	return edit(s.File, func(data []byte) (string, error) {
		before, err := parseOrEmpty(s.File, data)
		if err != nil {
			return "", err
		}
		i := slices.IndexFunc(before, func(there *Site) bool { return there.Name == s.Name })
		if i < 0 {
			return string(data), nil // somebody else was faster
		}
		text := without(string(data), before[i].Line)
		left, err := parseOrEmpty(s.File, []byte(text))
		if err == nil && len(left) != len(before)-1 {
			err = errors.New("it would describe other sites than before")
		}
		if err == nil && slices.ContainsFunc(left, func(other *Site) bool { return other.Name == s.Name }) {
			err = errors.New("it would still describe the site")
		}
		if err != nil {
			return "", fmt.Errorf("%s:%d: remove the site there by hand (%w)", s.File, before[i].Line, err)
		}
		return text, nil
	})
}

// without is a text without the lines of what begins in one of them.
func without(text string, line int) string {
	lines := strings.SplitAfter(text, "\n")
	first := line - 1
	indent := indentOf(lines[first])
	last := first + 1
	for last < len(lines) && (strings.TrimSpace(lines[last]) == "" || indentOf(lines[last]) > indent) {
		last++
	}
	return strings.Join(lines[:first], "") + strings.Join(lines[last:], "")
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }
