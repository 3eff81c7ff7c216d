package yamlfile

import (
	"cmp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Key is a key of the mapping that describes a T. It is declared once: what reads the file, the
// advice for an unknown key and the documentation come from it.
type Key[T any] struct {
	Name string
	Help string // one line for a person
	List bool   // it may have several values
	// Read reads the value, which messages call what; nil: it is read together with others.
	Read func(r *Reader, n *yaml.Node, into *T, what string)
}

// Take reads the keys of a mapping, in the order of their table, and returns the values by key. what names
// the mapping in messages; empty: it is the file. Habits advise those who come from other systems.
func Take[T any](
	r *Reader, n *yaml.Node, into *T, what string, keys []Key[T], habits map[string]string,
) map[string]*yaml.Node {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = keys[i].Name
	}
	found := r.Known(n, cmp.Or(what, "the file"), names, habits)
	for _, k := range keys {
		if n := found[k.Name]; n != nil && k.Read != nil {
			k.Read(r, n, into, strings.TrimPrefix(what+": "+k.Name, ": "))
		}
	}
	return found
}

// Into reads a text with parse, as [Scalar] does, into a field.
func Into[T, V any](parse func(string) (V, error), field func(*T) *V) func(*Reader, *yaml.Node, *T, string) {
	return func(r *Reader, n *yaml.Node, into *T, what string) {
		if text, ok := r.Text(n, what); ok {
			*field(into) = Scalar(r, n, text, what, parse)
		}
	}
}

// Whole reads a whole number from least on into a field.
func Whole[T any, V int | int64](least int64, field func(*T) *V) func(*Reader, *yaml.Node, *T, string) {
	return func(r *Reader, n *yaml.Node, into *T, what string) {
		if text, ok := r.Text(n, what); ok {
			*field(into) = V(r.Integer(n, text, what, least))
		}
	}
}
