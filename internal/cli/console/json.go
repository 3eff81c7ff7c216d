package console

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"fairway/internal/cli/screen"
)

// PrintJSON prints the one object of a command: a message of the API, or a
// struct with tags.
func (c *Console) PrintJSON(value any) {
	if message, ok := value.(proto.Message); ok {
		value = Plain(message.ProtoReflect())
	}
	_, _ = io.WriteString(c.Out, JSONText(value)) // the writer keeps the error
}

// JSONText is a value that can be encoded, as people and scripts read it.
func JSONText(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(value); err != nil {
		panic(fmt.Sprintf("encoding %T as JSON: %v", value, err)) // a type that is ours has no such field
	}
	return text.String()
}

type helpObject struct {
	Command string `json:"command"`
	Help    string `json:"help"`
}

type completionObject struct {
	Shell  string `json:"shell"`
	Script string `json:"script"`
}

// TextInJSON has help and completions, which cobra prints as text, be JSON objects too
// where that is asked for.
func (c *Console) TextInJSON(root *cobra.Command) {
	help := root.HelpFunc()
	root.SetHelpFunc(func(command *cobra.Command, arguments []string) {
		if !c.JSON {
			help(command, arguments)
			return
		}
		text := c.captured(func() { help(command, arguments) })
		c.PrintJSON(helpObject{Command: command.CommandPath(), Help: text})
	})
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		return
	}
	for _, shell := range completion.Commands() {
		print := shell.RunE
		shell.RunE = func(command *cobra.Command, arguments []string) (err error) {
			if !c.JSON {
				return print(command, arguments)
			}
			text := c.captured(func() { err = print(command, arguments) })
			if err == nil {
				c.PrintJSON(completionObject{Shell: command.Name(), Script: text})
			}
			return err
		}
	}
}

func (c *Console) captured(print func()) string {
	var text strings.Builder
	out, ok := c.Out.(*screen.Printed)
	if !ok {
		return ""
	}
	before := out.Out
	out.Out = &text
	defer func() { out.Out = before }()
	print()
	return text.String()
}

// Answer gives the one answer of a command: as a JSON object, or as text prints it.
func (c *Console) Answer(value any, text func()) error {
	if c.JSON {
		c.PrintJSON(value)
	} else {
		text()
	}
	return nil
}

// object keeps its keys in the order of the .proto file.
type object []member

type member struct {
	key   string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for i, m := range o {
		if i > 0 {
			text.WriteByte(',')
		}
		if err := encoder.Encode(m.key); err != nil {
			return nil, err
		}
		text.WriteByte(':')
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
	}
	return slices.Concat([]byte{'{'}, text.Bytes(), []byte{'}'}), nil
}

// Plain turns a message into values whose JSON a person and a script can use
// without knowing protobuf: every key is there, numbers are numbers, instants
// are RFC 3339 or null, durations are seconds.
func Plain(message protoreflect.Message) any {
	switch m := message.Interface().(type) {
	case *timestamppb.Timestamp:
		return instant(m)
	case *durationpb.Duration:
		return m.AsDuration().Seconds()
	}
	fields := message.Descriptor().Fields()
	members := make(object, 0, fields.Len())
	for i := range fields.Len() {
		field := fields.Get(i)
		members = append(members, member{string(field.Name()), plainField(message, field)})
	}
	return members
}

func instant(t *timestamppb.Timestamp) any {
	if !t.IsValid() {
		return nil
	}
	return t.AsTime().Format(time.RFC3339Nano)
}

func plainField(message protoreflect.Message, field protoreflect.FieldDescriptor) any {
	value := message.Get(field)
	switch {
	case field.IsList():
		list := make([]any, value.List().Len())
		for i := range list {
			list[i] = plainValue(field, value.List().Get(i))
		}
		return list
	case field.IsMap():
		entries := map[string]any{}
		value.Map().Range(func(key protoreflect.MapKey, entry protoreflect.Value) bool {
			entries[key.String()] = plainValue(field.MapValue(), entry)
			return true
		})
		return entries
	case field.Message() != nil && !message.Has(field):
		return nil
	}
	return plainValue(field, value)
}

func plainValue(field protoreflect.FieldDescriptor, value protoreflect.Value) any {
	switch field.Kind() {
	case protoreflect.MessageKind:
		return Plain(value.Message())
	case protoreflect.EnumKind:
		name := field.Enum().Values().ByNumber(value.Enum()).Name()
		prefix := strings.ToUpper(string(field.Enum().Name())) + "_"
		return strings.ToLower(strings.TrimPrefix(string(name), prefix))
	case protoreflect.BytesKind:
		return string(value.Bytes())
	default:
		return value.Interface()
	}
}
