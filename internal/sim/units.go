package sim

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Size is a number of bytes, or of bytes per second. A file writes it with a
// decimal (kB, MB, GB, TB) or binary (KiB, MiB, GiB, TiB) unit.
type Size int64

var sizeUnits = map[string]float64{
	"": 1, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "PB": 1e15,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}

// UnmarshalYAML reads a size such as 700MB.
func (s *Size) UnmarshalYAML(n *yaml.Node) error {
	text := strings.TrimSpace(n.Value)
	cut := strings.LastIndexAny(text, "0123456789.") + 1
	unit, known := sizeUnits[strings.TrimSpace(text[cut:])]
	value, err := strconv.ParseFloat(text[:cut], 64)
	if err != nil || !known || value < 0 || value*unit > math.MaxInt64 {
		return fmt.Errorf("line %d: %q is not a size such as 700MB or 10GiB", n.Line, n.Value)
	}
	*s = Size(math.Round(value * unit))
	return nil
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
