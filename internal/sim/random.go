package sim

import (
	"math/rand/v2"
	"reflect"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
)

// stream returns the random stream of one entity of a run: the same seed and
// the same names always give the same draws, and different names independent
// ones.
func stream(seed uint64, kind string, id ...uint64) *rand.Rand {
	h := mix(seed ^ 0x9e3779b97f4a7c15)
	for i := range len(kind) {
		h = mix(h ^ uint64(kind[i]))
	}
	for _, n := range id {
		h = mix(h ^ n)
	}
	return rand.New(rand.NewPCG(h, mix(h+1)))
}

// named folds a name into a number for stream.
func named(name string) uint64 {
	h := uint64(len(name))
	for i := range len(name) {
		h = mix(h ^ uint64(name[i]))
	}
	return h
}

// mix is the finalizer of SplitMix64: a bijection that spreads every bit.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Gauss is a normal distribution of durations, cut off at Least. A file
// writes it as a duration ("90s", no spread) or as {mean, sd, least}.
type Gauss struct {
	Mean  time.Duration `yaml:"mean"`
	SD    time.Duration `yaml:"sd"`
	Least time.Duration `yaml:"least"`
}

func (g Gauss) draw(r *rand.Rand) time.Duration {
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

func (g Gauss) zero() bool { return g == Gauss{} }
