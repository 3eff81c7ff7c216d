package experiment

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
)

// Paths into an experiment file join the keys with dots; an item of a list is
// named by its key name: sites.ciemat.batch.delay.

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// itemName is how a path names item i of a list.
func itemName(item *yaml.Node, i int) string {
	if k := keyIndex(item, "name"); k >= 0 {
		return item.Content[k+1].Value
	}
	return strconv.Itoa(i)
}

// keyIndex returns where a key stands in a mapping, or -1.
func keyIndex(n *yaml.Node, key string) int {
	if n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i
		}
	}
	return -1
}

// find returns the node at a path, or nil.
func find(n *yaml.Node, path string) *yaml.Node {
	for path != "" && n != nil {
		var key string
		key, path, _ = strings.Cut(path, ".")
		n = child(n, key)
	}
	return n
}

func child(n *yaml.Node, key string) *yaml.Node {
	if n.Kind == yaml.SequenceNode {
		for i, item := range n.Content {
			if itemName(item, i) == key {
				return item
			}
		}
		return nil
	}
	if i := keyIndex(n, key); i >= 0 {
		return n.Content[i+1]
	}
	return nil
}

// set puts a value at a path. The last key may be new; what leads to it must
// be there, or be made by it as a mapping.
func set(n *yaml.Node, path string, value *yaml.Node) error {
	key, rest, deeper := strings.Cut(path, ".")
	c := child(n, key)
	switch {
	case c == nil && n.Kind != yaml.MappingNode:
		return fmt.Errorf("line %d: nothing is named %s where %s is set", value.Line, key, path)
	case c == nil:
		c = &yaml.Node{Kind: yaml.MappingNode, Line: value.Line}
		n.Content = append(n.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: key, Line: value.Line}, c)
	}
	if deeper {
		return set(c, rest, value)
	}
	*c = *clone(value)
	return nil
}

func clone(n *yaml.Node) *yaml.Node {
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = clone(child)
	}
	return &c
}

// knownKeys refuses a key of a mapping that is none of allowed.
func knownKeys(n *yaml.Node, allowed ...string) error {
	if n.Kind != yaml.MappingNode {
		return fmt.Errorf("line %d: a mapping with the keys %s is expected", n.Line, strings.Join(allowed, ", "))
	}
	for i := 0; i < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(allowed, key.Value) {
			return fmt.Errorf("line %d: unknown key %q; known are %s", key.Line, key.Value, strings.Join(allowed, ", "))
		}
	}
	return nil
}

var ownForm = reflect.TypeFor[yaml.Unmarshaler]()

// checkKeys refuses keys that the type of a value does not have, all the way
// down.
func checkKeys(n *yaml.Node, t reflect.Type) error {
	if reflect.PointerTo(t).Implements(ownForm) {
		return nil
	}
	switch t.Kind() {
	case reflect.Map:
		if n.Kind != yaml.MappingNode {
			return fmt.Errorf("line %d: a mapping is expected", n.Line)
		}
		for i := 0; i < len(n.Content); i += 2 {
			if err := checkKeys(n.Content[i+1], t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Slice:
		for _, item := range n.Content {
			if err := checkKeys(item, t.Elem()); err != nil {
				return err
			}
		}
	case reflect.Struct:
		fields := map[string]reflect.StructField{}
		var names []string
		for f := range t.Fields() {
			fields[f.Tag.Get("yaml")] = f
			names = append(names, f.Tag.Get("yaml"))
		}
		if err := knownKeys(n, names...); err != nil {
			return err
		}
		for i := 0; i < len(n.Content); i += 2 {
			f := fields[n.Content[i].Value]
			if err := checkNumber(n.Content[i+1], f); err != nil {
				return err
			}
			if err := checkKeys(n.Content[i+1], f.Type); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkNumber refuses a duration without a unit, which would count as so many
// nanoseconds, and what is below zero, unless the field has the tag negative,
// which says what that means.
func checkNumber(n *yaml.Node, f reflect.StructField) error {
	below := false
	switch {
	case f.Type == reflect.TypeFor[time.Duration]():
		d, err := readDuration(n)
		if err != nil {
			return err
		}
		if below = d < 0; !below {
			n.Value = d.String() // days are not known to the reader of YAML
		}
	case f.Type.Kind() == reflect.Int || f.Type.Kind() == reflect.Int64 || f.Type.Kind() == reflect.Float64:
		v, err := strconv.ParseFloat(n.Value, 64)
		below = err == nil && v < 0
	}
	if _, may := f.Tag.Lookup("negative"); below && !may {
		return fmt.Errorf("line %d: %s: %s: it cannot be negative", n.Line, f.Tag.Get("yaml"), n.Value)
	}
	return nil
}

// readDuration reads a duration with an optional sign.
func readDuration(n *yaml.Node) (time.Duration, error) {
	text, below := strings.CutPrefix(n.Value, "-")
	d, err := quantity.Duration(text)
	if below {
		d = -d
	}
	return d, lineError(n, err)
}
