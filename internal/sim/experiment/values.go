package experiment

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
	"fairway/internal/yamlfile"
)

// Size is a number of bytes, or of bytes per second.
type Size int64

// ReadYAML reads a size such as 700MB.
func (s *Size) ReadYAML(r *yamlfile.Reader, n *yaml.Node, path string) {
	*s = Size(yamlfile.Read(r, n, path, quantity.Size))
}

// Chance is a probability.
type Chance float64

// ReadYAML reads a number from 0 to 1.
func (c *Chance) ReadYAML(r *yamlfile.Reader, n *yaml.Node, path string) {
	*c = yamlfile.Read(r, n, path, func(text string) (Chance, error) {
		value, err := quantity.Decimal(text)
		if err != nil || value > 1 {
			return 0, fmt.Errorf("%q is no probability; write a number from 0 to 1", text)
		}
		return Chance(value), nil
	})
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

// ReadYAML reads either form.
func (g *Gauss) ReadYAML(r *yamlfile.Reader, n *yaml.Node, path string) {
	if *g = (Gauss{}); yamlfile.Follow(n).Kind == yaml.ScalarNode {
		g.Mean = yamlfile.Read(r, n, path, quantity.Duration)
		return
	}
	type plain Gauss
	r.Decode(n, (*plain)(g), path)
}

// IsZero reports whether nothing is set.
func (g Gauss) IsZero() bool { return g == Gauss{} }

// Values are those that a placeholder takes: a file lists them, or gives their
// number, and then they are 1, 2, and so on.
type Values []string

// MaxValues bounds the values of one placeholder, and the files that match one
// output.
const MaxValues = 1_000_000

// ReadYAML reads either form.
func (v *Values) ReadYAML(r *yamlfile.Reader, n *yaml.Node, path string) {
	if yamlfile.Follow(n).Kind != yaml.ScalarNode {
		*v = r.Texts(n, path)
		return
	}
	*v = Numbered(yamlfile.Read(r, n, path, func(text string) (int, error) {
		count, err := quantity.Whole(text)
		if err != nil || count > MaxValues {
			return 0, fmt.Errorf("%q is no number of values; write a list of values, or their number, at most %d",
				text, MaxValues)
		}
		return int(count), nil
	}))
}

// Numbered returns the values 1 to n.
func Numbered(n int) []string {
	list := make([]string, n)
	for i := range list {
		list[i] = strconv.Itoa(i + 1)
	}
	return list
}
