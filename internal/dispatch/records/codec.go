package records

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"fairway/internal/dispatch/rows"
	"fairway/internal/taskqueue"
)

// Records of which there is one or more for each job or file have a table of their fields, from which
// they are written and read: that is most of what a commit costs, and of what loading a store takes, and
// encoding/json would take six times as long. All others are left to encoding/json. What is empty is
// left out, and what is read is what is written: no spaces, no false, no null.

// form is the version of the form of all bodies, which each begins with.
const form = 1

var formField = []byte(`{"v":1`)

// tabled is a body with a table of fields.
type tabled interface {
	append(b []byte) []byte // its fields, each with a comma before it
	scan(s *scan)
}

// Append appends the encoded body of a record: a pointer to a struct of this package.
func Append(b []byte, body any) []byte {
	b = append(b, formField...)
	if x, ok := body.(tabled); ok {
		return append(x.append(b), '}')
	}
	data, err := json.Marshal(body)
	if err != nil {
		panic(fmt.Sprintf("records: encoding %T: %v", body, err)) // plain data always encodes
	}
	if len(data) == len("{}") {
		return append(b, '}')
	}
	return append(append(b, ','), data[1:]...)
}

// Decode reads the body of a record. What the struct held before is gone; of a body with a table its
// texts that are the same stay where they are, and so does the memory of its lists. After an error it
// means nothing.
func Decode(r taskqueue.Record, into any) error { return DecodeIn(nil, r, into) }

// DecodeIn is Decode for a body whose names and payload are to stand in texts.
func DecodeIn(texts *rows.Text, r taskqueue.Record, into any) error {
	if rest, ok := bytes.CutPrefix(r.Body, formField); !ok || len(rest) == 0 || rest[0] != ',' && rest[0] != '}' {
		return fmt.Errorf("dispatch: record %s of table %s has no form, or not the form %d that this program knows: %.40q",
			r.Key, r.Table, form, r.Body)
	}
	x, ok := into.(tabled)
	if !ok {
		if err := json.Unmarshal(r.Body, into); err != nil {
			return fmt.Errorf("dispatch: reading record %s of table %s: %w", r.Key, r.Table, err)
		}
		return nil
	}
	s := scan{text: r.Body, at: len(formField), texts: texts}
	if x.scan(&s); s.lost || s.at != len(s.text) {
		return fmt.Errorf("dispatch: reading record %s of table %s: at byte %d of %d", r.Key, r.Table, s.at, len(s.text))
	}
	return nil
}

// object is a table of fields, in the order in which they are written. It has at most 64.
type object[T any] []field[T]

// field is a part of a T, with its name.
type field[T any] struct {
	name  []byte // with a comma before it and a colon behind it
	empty func(*T) bool
	put   func([]byte, *T) []byte // its value
	take  func(*scan, *T)
	clear func(*T)
}

// appendFields appends the fields that are not empty, each with a comma before it.
func (o object[T]) appendFields(b []byte, t *T) []byte {
	for i := range o {
		if f := &o[i]; !f.empty(t) {
			b = f.put(append(b, f.name...), t)
		}
	}
	return b
}

func (o object[T]) append(b []byte, t *T) []byte {
	begin := len(b)
	b = o.appendFields(b, t)
	if len(b) == begin {
		return append(b, "{}"...)
	}
	b[begin] = '{'
	return append(b, '}')
}

// take reads an object.
func (o object[T]) take(s *scan, t *T) {
	s.expect('{')
	o.scanFields(s, t, true)
}

// scanFields reads fields and the end of the object; before the first of it stands no comma.
func (o object[T]) scanFields(s *scan, t *T, first bool) {
	var seen uint64
	for next := 0; !s.next('}') && !s.lost; first = false {
		if !first {
			s.expect(',')
		}
		if i := o.named(s, next); i >= 0 && !s.lost {
			o[i].take(s, t)
			seen |= 1 << i
			next = i + 1
		}
	}
	for i := range o {
		if seen&(1<<i) == 0 {
			o[i].clear(t)
		}
	}
}

// named passes over the name that comes, and finds its field: mostly the next one. Below 0
// there is none, and it has passed over the value.
func (o object[T]) named(s *scan, next int) int {
	rest := s.text[s.at:]
	for range 2 {
		for i := next; i < len(o) && len(rest) > 1; i++ {
			if name := o[i].name[1:]; name[1] == rest[1] && bytes.HasPrefix(rest, name) {
				s.at += len(name)
				return i
			}
		}
		next = 0
	}
	s.raw() // one that this program does not know
	s.expect(':')
	s.value()
	return -1
}

// of makes a field of a value that a T holds.
func of[T, V any](
	name string, at func(*T) *V, empty func(*V) bool, put func([]byte, *V) []byte, take func(*scan, *V),
) field[T] {
	return field[T]{
		name:  []byte(`,"` + name + `":`),
		empty: func(t *T) bool { return empty(at(t)) },
		put:   func(b []byte, t *T) []byte { return put(b, at(t)) },
		take:  func(s *scan, t *T) { take(s, at(t)) },
		clear: func(t *T) { *at(t) = *new(V) },
	}
}

func isZero[V comparable](v *V) bool { return *v == *new(V) }

func isEmpty[E any](list *[]E) bool { return len(*list) == 0 }

// text is a field that mostly is that of the record before, which then is kept once.
func text[T any](name string, at func(*T) *string) field[T] {
	return of(name, at, isZero, appendString, scanText)
}

// ownText is a field that stands in the texts of a run.
func ownText[T any](name string, at func(*T) *string) field[T] {
	return of(name, at, isZero, appendString, func(s *scan, v *string) { *v = s.keep(s.raw()) })
}

func texts[T any](name string, at func(*T) *[]string) field[T] {
	return of(name, at, isEmpty, appendList(appendString), func(s *scan, v *[]string) {
		before := *v // which others may have
		*v = make([]string, 0, len(before))
		s.list(func(i int) {
			text := ""
			if i < len(before) {
				text = before[i]
			}
			scanText(s, &text)
			*v = append(*v, text)
		})
	})
}

// list is a field of several values.
func list[T, E any](name string, at func(*T) *[]E, put func([]byte, *E) []byte, take func(*scan, *E)) field[T] {
	return of(name, at, isEmpty, appendList(put), func(s *scan, v *[]E) {
		*v = (*v)[:0]
		s.list(func(i int) {
			*v = append(*v, *new(E))
			take(s, &(*v)[i])
		})
	})
}

func appendList[E any](put func([]byte, *E) []byte) func([]byte, *[]E) []byte {
	return func(b []byte, v *[]E) []byte {
		b = append(b, '[')
		for i := range *v {
			if i > 0 {
				b = append(b, ',')
			}
			b = put(b, &(*v)[i])
		}
		return append(b, ']')
	}
}

type integer interface {
	~int | ~int8 | ~int32 | ~int64 | ~uint8 | ~uint32 | ~uint64
}

func number[T any, N integer](name string, at func(*T) *N) field[T] {
	return of(name, at, isZero, appendNumber, scanNumber)
}

func flag[T any](name string, at func(*T) *bool) field[T] {
	return of(name, at, isZero, appendFlag, scanFlag)
}

// inBase64 is a field of any bytes, which stand in the texts of a run.
func inBase64[T any](name string, at func(*T) *[]byte) field[T] {
	return of(name, at, isEmpty, func(b []byte, v *[]byte) []byte {
		return append(base64.StdEncoding.AppendEncode(append(b, '"'), *v), '"')
	}, func(s *scan, v *[]byte) {
		raw := s.raw()
		data := s.memory(base64.StdEncoding.DecodedLen(len(raw)))
		n, err := base64.StdEncoding.Strict().Decode(data, raw)
		*v, s.lost = data[:n], s.lost || err != nil
	})
}

// within is a field that is an object itself.
func within[T any, E any](name string, at func(*T) *E, empty func(*E) bool, o object[E]) field[T] {
	return of(name, at, empty, o.append, o.take)
}

// rare is a field that encoding/json writes and reads.
func rare[T, E any](name string, at func(*T) *E, empty func(*E) bool) field[T] {
	return of(name, at, empty, func(b []byte, v *E) []byte {
		data, err := json.Marshal(v)
		if err != nil {
			panic(fmt.Sprintf("records: encoding %T: %v", v, err)) // plain data always encodes
		}
		return append(b, data...)
	}, func(s *scan, v *E) {
		*v = *new(E) // as others may have what it refers to
		s.lost = s.lost || json.Unmarshal(s.value(), v) != nil
	})
}

func appendString(b []byte, v *string) []byte {
	s := *v
	for i := range len(s) {
		if c := s[i]; c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\' {
			if data, err := json.Marshal(s); err == nil {
				return append(b, data...)
			}
		}
	}
	return append(append(append(b, '"'), s...), '"')
}

func appendNumber[N integer](b []byte, v *N) []byte {
	if *v < 0 {
		return strconv.AppendInt(b, int64(*v), 10)
	}
	return strconv.AppendUint(b, uint64(*v), 10)
}

func appendFlag(b []byte, _ *bool) []byte { return append(b, "true"...) }

func appendHex(b, bytes []byte) []byte {
	return append(hex.AppendEncode(append(b, '"'), bytes), '"')
}

// scan reads one JSON text. When it meets what it does not know, it is lost, and what was
// read so far means nothing.
type scan struct {
	text  []byte
	at    int
	lost  bool
	texts *rows.Text // where what is kept is to stand; nil: anywhere
}

// next reports whether the text goes on with this byte, and passes over it.
func (s *scan) next(c byte) bool {
	if s.at < len(s.text) && s.text[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scan) expect(c byte) {
	if !s.next(c) {
		s.lost = true
	}
}

// list reads a list. The element is called for each value.
func (s *scan) list(element func(i int)) {
	s.expect('[')
	for i := 0; !s.next(']') && !s.lost; i++ {
		if i > 0 {
			s.expect(',')
		}
		if !s.lost {
			element(i)
		}
	}
}

// raw reads a string, and returns it where it stands if it is plain ASCII.
func (s *scan) raw() []byte {
	s.expect('"')
	begin, plain := s.at, true
	for ; !s.lost && s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			if plain {
				return s.text[begin : s.at-1]
			}
			var text string
			s.lost = json.Unmarshal(s.text[begin-1:s.at], &text) != nil
			return []byte(text)
		case c == '\\':
			s.at++
			plain = false
		case c < ' ' || c >= utf8.RuneSelf:
			plain = false
		}
	}
	s.at, s.lost = min(s.at, len(s.text)), true
	return nil
}

// memory returns so many bytes, of which the caller writes each.
func (s *scan) memory(n int) []byte {
	if s.texts == nil {
		return make([]byte, n)
	}
	return s.texts.Take(n)
}

func (s *scan) keep(raw []byte) string {
	if s.texts == nil {
		return string(raw)
	}
	return s.texts.StringOf(raw)
}

func scanText(s *scan, v *string) {
	if raw := s.raw(); string(raw) != *v {
		*v = string(raw)
	}
}

func scanNumber[N integer](s *scan, v *N) {
	negative := s.next('-')
	begin := s.at
	for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
		s.at++
	}
	digits := s.text[begin:s.at]
	n, err := strconv.ParseUint(string(digits), 10, 64)
	*v = N(n)
	if negative {
		*v = -*v
	}
	if err != nil || *v < 0 != negative || (uint64(*v) != n && uint64(-*v) != n) || len(digits) > 1 && digits[0] == '0' {
		s.lost = true
	}
}

func scanFlag(s *scan, v *bool) {
	s.word("true") // false is not written
	*v = true
}

func (s *scan) word(word string) {
	for i := range len(word) {
		s.expect(word[i])
	}
}

// scanHex reads exactly as many bytes as there are.
func scanHex(s *scan, into []byte) {
	raw := s.raw()
	if len(raw) != hex.EncodedLen(len(into)) {
		s.lost = true
		return
	}
	_, err := hex.Decode(into, raw)
	s.lost = s.lost || err != nil
}

// value reads one value of any kind, and returns its text.
func (s *scan) value() []byte {
	decoder := json.NewDecoder(bytes.NewReader(s.text[s.at:]))
	var value json.RawMessage
	if decoder.Decode(&value) != nil {
		s.lost = true
	}
	s.at += int(decoder.InputOffset())
	return value
}
