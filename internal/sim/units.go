package sim

import (
	"fmt"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
)

// Size is a number of bytes, or of bytes per second.
type Size int64

// UnmarshalYAML reads a size such as 700MB.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	size, err := quantity.Size(n.Value)
	*s = Size(size)
	return lineError(n, err)
}

// Chance is a probability.
type Chance float64

// UnmarshalYAML reads a number from 0 to 1.
func (c *Chance) UnmarshalYAML(n *yaml.Node) error {
	value, err := strconv.ParseFloat(n.Value, 64)
	if err != nil || value < 0 || value > 1 {
		return fmt.Errorf("line %d: %q is not a probability from 0 to 1", n.Line, n.Value)
	}
	*c = Chance(value)
	return nil
}

// lineError puts the line of a node before an error that does not name one.
func lineError(n *yaml.Node, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("line %d: %w", n.Line, err)
}

var yamlLine = regexp.MustCompile(`(?:yaml: )?(?:unmarshal errors:\n\s*)?line (\d+): `)

// inFile turns the "line 7: " that YAML errors begin with into "file:7: ".
func inFile(file string, err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	at := yamlLine.FindStringSubmatchIndex(text)
	if at == nil || at[0] > 8 {
		return fmt.Errorf("%s: %w", file, err)
	}
	return fmt.Errorf("%s:%s: %s", file, text[at[2]:at[3]], text[at[1]:])
}
