package yamlfile

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
)

// Form is a type that reads itself, from a form of its own in the file.
type Form interface {
	// ReadYAML reads n, which stands at path.
	ReadYAML(r *Reader, n *yaml.Node, path string)
}

// Decode reads the mapping n, which stands at path, into the struct that into
// points to. It leaves alone what n does not set.
//
// Each exported field has its key in the tag yaml. Its type is a [Form], a text,
// a flag, a number, a duration, or a struct, list, map by text or pointer of
// these. A list of one item may stand without brackets. No number is negative,
// unless the field has the tag negative.
func (r *Reader) Decode(n *yaml.Node, into any, path string) {
	r.fields(n, reflect.ValueOf(into).Elem(), path)
}

func (r *Reader) fields(n *yaml.Node, v reflect.Value, path string) {
	var keys []string
	for f := range v.Type().Fields() {
		keys = append(keys, f.Tag.Get("yaml"))
	}
	what := path
	if what == "" {
		what = "the " + r.Kind
	}
	found := r.Known(n, what, keys, nil)
	for i, key := range keys {
		if n := found[key]; n != nil {
			_, negative := v.Type().Field(i).Tag.Lookup("negative")
			r.value(n, v.Field(i), Join(path, key), negative)
		}
	}
}

func (r *Reader) value(n *yaml.Node, v reflect.Value, path string, negative bool) {
	if form, ok := v.Addr().Interface().(Form); ok {
		form.ReadYAML(r, n, path)
		return
	}
	if v.Type() == reflect.TypeFor[time.Duration]() {
		v.SetInt(int64(Read(r, n, path, signed(negative, quantity.Duration))))
		return
	}
	switch v.Kind() {
	case reflect.String:
		text, _ := r.Text(n, path)
		v.SetString(text)
	case reflect.Bool:
		v.SetBool(Read(r, n, path, Flag))
	case reflect.Int, reflect.Int64:
		least := int64(0)
		if negative {
			least = math.MinInt64
		}
		if text, ok := r.Text(n, path); ok {
			v.SetInt(r.Integer(n, text, path, least))
		}
	case reflect.Uint64:
		v.SetUint(Read(r, n, path, func(text string) (uint64, error) {
			value, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				err = fmt.Errorf("%q is no such number; write a whole number from 0", text)
			}
			return value, err
		}))
	case reflect.Float64:
		v.SetFloat(Read(r, n, path, signed(negative, decimal)))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		r.value(n, v.Elem(), path, negative)
	case reflect.Struct:
		r.fields(n, v, path)
	case reflect.Slice:
		items := r.Items(n, path)
		v.Set(reflect.MakeSlice(v.Type(), len(items), len(items)))
		for i, item := range items {
			r.value(item, v.Index(i), Join(path, ItemName(item, i)), negative)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for _, f := range r.Mapping(n, path) {
			element := reflect.New(v.Type().Elem()).Elem()
			r.value(f.Value, element, Join(path, f.Key.Value), negative)
			v.SetMapIndex(reflect.ValueOf(f.Key.Value).Convert(v.Type().Key()), element)
		}
	default:
		panic(fmt.Sprintf("yamlfile: %s has the type %s, which no file has", path, v.Type()))
	}
}

// Read reads the text of n with parse, as [Scalar] does.
func Read[T any](r *Reader, n *yaml.Node, what string, parse func(text string) (T, error)) (value T) {
	text, ok := r.Text(n, what)
	if !ok {
		return value
	}
	return Scalar(r, n, text, what, parse)
}

// Flag reads true or false, as [Scalar] wants it.
func Flag(text string) (bool, error) {
	if text != "true" && text != "false" {
		return false, fmt.Errorf("%q is neither; write true or false", text)
	}
	return text == "true", nil
}

// signed reads a text that may begin with a minus, if negative.
func signed[T ~int64 | ~float64](negative bool, parse func(text string) (T, error)) func(text string) (T, error) {
	return func(text string) (T, error) {
		digits, below := strings.CutPrefix(text, "-")
		if !below || !negative {
			return parse(text)
		}
		value, err := parse(digits)
		return -value, err
	}
}

func decimal(text string) (float64, error) {
	value, err := quantity.Decimal(text)
	if err != nil {
		err = fmt.Errorf("%w; write a number such as 2 or 0.5", err)
	}
	return value, err
}

// A path into a file joins keys with dots; an item of a list is named by its
// key name, or by its number from 0: sites.ciemat.batch.delay.

// Join returns the path of a key below path.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// Find returns the node at a path below n, or nil.
func Find(n *yaml.Node, path string) *yaml.Node {
	for path != "" && n != nil {
		var key string
		key, path, _ = strings.Cut(path, ".")
		n = Child(n, key)
	}
	return n
}

// Child returns the value of a key of a mapping, or the item of a list that the
// key names, or nil.
func Child(n *yaml.Node, key string) *yaml.Node {
	switch n = Follow(n); n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == key {
				return n.Content[i+1]
			}
		}
	case yaml.SequenceNode:
		for i, item := range n.Content {
			if ItemName(item, i) == key {
				return item
			}
		}
	}
	return nil
}

// ItemName returns how a path names item i of a list.
func ItemName(item *yaml.Node, i int) string {
	if Follow(item).Kind == yaml.MappingNode {
		if name := Child(item, "name"); name != nil {
			return name.Value
		}
	}
	return strconv.Itoa(i)
}

// FailIn adds a problem at the node at a path below n, or at the nearest node
// above it that is there.
func (r *Reader) FailIn(n *yaml.Node, path, instead, what string, args ...any) {
	text := fmt.Sprintf(what, args...)
	if path != "" {
		text = path + ": " + text
	}
	for ; path != ""; path = path[:max(strings.LastIndexByte(path, '.'), 0)] {
		if found := Find(n, path); found != nil {
			n = found
			break
		}
	}
	r.Fail(n, instead, "%s", text)
}
