package site

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"fairway/internal/disk"
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
func Add(file, name string, settings []Setting) (*Site, error) {
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	text := string(data)
	before, err := parseOrEmpty(file, data)
	if err != nil {
		return nil, err
	}
	for _, s := range before {
		if s.Name == name {
			return nil, &ExistsError{s}
		}
	}
	description, err := describe(name, settings)
	if err != nil {
		return nil, err
	}
	// On its own first, so that what is wrong is told of what the person gave.
	if _, err := Parse("the site", []byte("sites:\n"+description)); err != nil {
		return nil, withoutPlaces(err)
	}
	if strings.TrimSpace(text) == "" {
		text = "sites:\n"
	}
	if !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	text += description
	return save(file, text, name)
}

// save writes a file that is right, and describes what it should.
func save(file, text, name string) (*Site, error) {
	sites, err := parseOrEmpty(file, []byte(text))
	if err != nil {
		return nil, fmt.Errorf("%s is written in a form that only a person can change (sites indented by two spaces under `sites:` can be changed here): %w", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return nil, err
	}
	if err := replace(file, text); err != nil {
		return nil, err
	}
	for _, s := range sites {
		if s.Name == name {
			return s, nil
		}
	}
	return nil, nil
}

func parseOrEmpty(file string, data []byte) ([]*Site, error) {
	if strings.TrimSpace(string(data)) == "" {
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
	data, err := os.ReadFile(s.File)
	if err != nil {
		return err
	}
	lines := strings.SplitAfter(string(data), "\n")
	first := s.Line - 1
	if first >= len(lines) {
		return fmt.Errorf("%s has changed; try again", s.File)
	}
	indent := indentOf(lines[first])
	last := first + 1
	for last < len(lines) && (strings.TrimSpace(lines[last]) == "" || indentOf(lines[last]) > indent) {
		last++
	}
	text := strings.Join(lines[:first], "") + strings.Join(lines[last:], "")
	left, err := parseOrEmpty(s.File, []byte(text))
	for _, other := range left {
		if other.Name == s.Name {
			err = errors.New("it would still describe the site")
		}
	}
	before, _ := parseOrEmpty(s.File, data)
	if err == nil && len(left) != len(before)-1 {
		err = errors.New("it would describe other sites than before")
	}
	if err != nil {
		return fmt.Errorf("%s:%d: remove the site there by hand (%w)", s.File, s.Line, err)
	}
	_, err = save(s.File, text, s.Name)
	return err
}

func indentOf(line string) int { return len(line) - len(strings.TrimLeft(line, " ")) }

// replace writes a file as a whole. One that is a link stays a link.
func replace(file, text string) error {
	if target, err := filepath.EvalSymlinks(file); err == nil {
		file = target
	}
	fresh, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	_, err = fresh.WriteString(text)
	err = errors.Join(err, fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), file)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh.Name()))
	}
	return disk.Sync(filepath.Dir(file))
}
