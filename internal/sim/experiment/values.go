package experiment

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strconv"
	"time"

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

// Gauss is a normal distribution of durations, cut off at Least. A file
// writes it as a duration ("90s", no spread) or as {mean, sd, least}.
type Gauss struct {
	Mean  time.Duration `yaml:"mean"`
	SD    time.Duration `yaml:"sd"`
	Least time.Duration `yaml:"least"`
}

// Draw takes one duration from a random stream; without a spread it leaves the
// stream alone.
func (g Gauss) Draw(r *rand.Rand) time.Duration {
	if g.SD == 0 {
		return max(g.Mean, g.Least)
	}
	return max(g.Mean+time.Duration(r.NormFloat64()*float64(g.SD)), g.Least)
}

// UnmarshalYAML reads either form.
func (g *Gauss) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		d, err := quantity.Duration(n.Value)
		if err != nil {
			return lineError(n, err)
		}
		*g = Gauss{Mean: d}
		return nil
	}
	type plain Gauss
	if err := checkKeys(n, reflect.TypeFor[plain]()); err != nil {
		return err
	}
	var p plain
	if err := n.Decode(&p); err != nil {
		return err
	}
	*g = Gauss(p)
	return nil
}

// IsZero reports whether nothing is set.
func (g Gauss) IsZero() bool { return g == Gauss{} }

// Values are those that a placeholder takes: a file lists them, or gives their
// number, and then they are 1, 2, and so on.
type Values []string

// MaxValues bounds the values of one placeholder, and the files that match one
// output.
const MaxValues = 1_000_000

// UnmarshalYAML reads either form.
func (v *Values) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind != yaml.ScalarNode {
		return n.Decode((*[]string)(v))
	}
	count, err := strconv.Atoi(n.Value)
	if err != nil || count < 0 || count > MaxValues {
		return fmt.Errorf("line %d: %q: a list of values or their number, at most %d, is expected", n.Line, n.Value, MaxValues)
	}
	*v = Numbered(count)
	return nil
}

// Numbered returns the values 1 to n.
func Numbered(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = strconv.Itoa(i + 1)
	}
	return list
}
