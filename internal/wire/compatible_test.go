package wire

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

var update = flag.Bool("update", false, "add what is new in the API to testdata/api.txt")

// stored has the API that programs of people were written for, one fact a line.
const stored = "testdata/api.txt"

// TestCompatible keeps the services of people compatible, for protobuf and JSON alike: what the
// stored API has, the one of now has too. What only pilots use is not part of it.
func TestCompatible(t *testing.T) {
	now := facts(File_api_proto)
	maps.Copy(now, facts(File_rights_proto))
	text, err := os.ReadFile(stored)
	if err != nil && !*update {
		t.Fatal(err)
	}
	before := map[string]string{}
	for line := range strings.Lines(string(text)) {
		what, is, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		if !ok {
			t.Fatalf("%s: no fact: %s", stored, line)
		}
		before[what] = is
	}
	for _, broken := range breaks(before, now) {
		t.Error(broken)
	}
	if t.Failed() {
		t.Fatalf("Programs that use the API of before would break: add a field, a value or a call instead. If it must be, "+
			"change %s by hand, and say so in CHANGELOG.md.", stored)
	}
	if *update {
		var all strings.Builder
		for _, what := range slices.Sorted(maps.Keys(now)) {
			fmt.Fprintf(&all, "%s: %s\n", what, now[what])
		}
		if err := os.WriteFile(stored, []byte(all.String()), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, what := range slices.Sorted(maps.Keys(now)) {
		if _, known := before[what]; !known {
			t.Errorf("%s: %s is new; run `go test ./internal/wire -update`, which keeps it from now on", what, now[what])
		}
	}
}

// breaks tells what programs that were written for the facts of before would miss.
func breaks(before, now map[string]string) (broken []string) {
	for _, what := range slices.Sorted(maps.Keys(before)) {
		switch is, there := now[what]; {
		case !there:
			broken = append(broken, fmt.Sprintf("%s: %s was removed", what, before[what]))
		case is != before[what]:
			broken = append(broken, fmt.Sprintf("%s: %s became %s", what, before[what], is))
		}
	}
	return broken
}

// facts are what a program relies on that calls the services of a file: calls, and the messages and
// enums that they reach, in whatever file these are. Fields and values are known by their
// numbers, which protobuf sends; their names are what JSON has.
func facts(file protoreflect.FileDescriptor) map[string]string {
	f := facting{map[string]string{}, map[protoreflect.FullName]bool{}}
	for i := range file.Services().Len() {
		service := file.Services().Get(i)
		for k := range service.Methods().Len() {
			call := service.Methods().Get(k)
			f.known[fmt.Sprintf("call %s/%s", service.FullName(), call.Name())] = fmt.Sprintf("(%s%s) returns (%s%s)",
				word("stream ", call.IsStreamingClient()), call.Input().FullName(),
				word("stream ", call.IsStreamingServer()), call.Output().FullName())
			f.message(call.Input())
			f.message(call.Output())
		}
	}
	return f.known
}

// facting collects facts.
type facting struct {
	known map[string]string
	seen  map[protoreflect.FullName]bool
}

func (f facting) message(m protoreflect.MessageDescriptor) {
	if f.seen[m.FullName()] || strings.HasPrefix(string(m.FullName()), "google.protobuf.") {
		return
	}
	f.seen[m.FullName()] = true
	for i := range m.ReservedRanges().Len() {
		for n := m.ReservedRanges().Get(i)[0]; n < m.ReservedRanges().Get(i)[1]; n++ {
			f.known[fmt.Sprintf("field %s %d", m.FullName(), n)] = "reserved"
		}
	}
	for i := range m.Fields().Len() {
		field := m.Fields().Get(i)
		f.known[fmt.Sprintf("field %s %d", m.FullName(), field.Number())] = f.field(field)
	}
}

// field describes a field, and collects what its type has.
func (f facting) field(field protoreflect.FieldDescriptor) string {
	kind := field.Kind().String()
	switch {
	case field.IsMap():
		return fmt.Sprintf("map<%s, %s> %s", f.field(field.MapKey()), f.field(field.MapValue()), field.Name())
	case field.Message() != nil:
		kind = string(field.Message().FullName())
		f.message(field.Message())
	case field.Enum() != nil:
		kind = string(field.Enum().FullName())
		for i := range field.Enum().Values().Len() {
			value := field.Enum().Values().Get(i)
			f.known[fmt.Sprintf("value %s %d", kind, value.Number())] = string(value.Name())
		}
	}
	text := word("repeated ", field.IsList()) + word("optional ", field.HasOptionalKeyword()) +
		fmt.Sprintf("%s %s", kind, field.Name())
	if one := field.ContainingOneof(); one != nil && !one.IsSynthetic() {
		text += fmt.Sprintf(" in oneof %s", one.Name())
	}
	if field.HasJSONName() && field.JSONName() != jsonName(string(field.Name())) {
		text += fmt.Sprintf(" (JSON: %s)", field.JSONName())
	}
	return text
}

func word(text string, so bool) string {
	if so {
		return text
	}
	return ""
}

// jsonName is what protobuf calls a field in JSON unless its .proto file says otherwise.
func jsonName(name string) string {
	words := strings.Split(name, "_")
	for i := 1; i < len(words); i++ {
		words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
	}
	return strings.Join(words, "")
}

// TestBreaks changes the API in all ways that break programs, and in some that do not.
func TestBreaks(t *testing.T) {
	type file = descriptorpb.FileDescriptorProto
	message := func(f *file, name string) *descriptorpb.DescriptorProto {
		return f.MessageType[slices.IndexFunc(f.MessageType, func(m *descriptorpb.DescriptorProto) bool {
			return m.GetName() == name
		})]
	}
	for _, c := range []struct {
		name   string
		change func(api, pilot *file)
		want   string // part of the one message; empty: nothing breaks
	}{
		{"nothing", func(_, _ *file) {}, ""},
		{"another field", func(api, _ *file) {
			m := message(api, "CancelRequest")
			added := proto.CloneOf(m.Field[1])
			added.Name, added.JsonName, added.Number = proto.String("more"), proto.String("more"), proto.Int32(99)
			m.Field = append(m.Field, added)
		}, ""},
		{"a field less", func(api, _ *file) {
			m := message(api, "CancelRequest")
			m.Field = m.Field[:1]
		}, "field fairway.v1.CancelRequest 2: uint32 run was removed"},
		{"another name", func(api, _ *file) {
			field := message(api, "CancelRequest").Field[1]
			field.Name, field.JsonName = proto.String("number"), proto.String("number")
		}, "uint32 run became uint32 number"},
		{"another name in JSON", func(api, _ *file) {
			message(api, "CancelRequest").Field[1].JsonName = proto.String("number")
		}, "uint32 run became uint32 run (JSON: number)"},
		{"another number", func(api, _ *file) {
			message(api, "CancelRequest").Field[1].Number = proto.Int32(7)
		}, "field fairway.v1.CancelRequest 2: uint32 run was removed"},
		{"another type", func(api, _ *file) {
			message(api, "CancelRequest").Field[1].Type = descriptorpb.FieldDescriptorProto_TYPE_UINT64.Enum()
		}, "uint32 run became uint64 run"},
		{"one instead of many", func(api, _ *file) {
			message(api, "CancelRequest").Field[0].Label = descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum()
		}, "repeated string jobs became string jobs"},
		{"a number that was in use", func(api, _ *file) {
			message(api, "LogChunk").ReservedRange = nil
		}, "field fairway.v1.LogChunk 3: reserved was removed"},
		{"a call less", func(api, _ *file) {
			api.Service[0].Method = api.Service[0].Method[1:]
		}, "(fairway.v1.ProgressRequest) returns (stream fairway.v1.ProgressReport) was removed"},
		{"no stream", func(api, _ *file) {
			api.Service[0].Method[0].ServerStreaming = nil
		}, "(stream fairway.v1.ProgressReport) became (fairway.v1.ProgressRequest) returns (fairway.v1.Progr"},
		{"another value", func(_, pilot *file) {
			pilot.EnumType[slices.IndexFunc(pilot.EnumType, func(e *descriptorpb.EnumDescriptorProto) bool {
				return e.GetName() == "Access"
			})].Value[1].Name = proto.String("RENAMED")
		}, "value fairway.v1.Access 1:"},
		{"a message of pilots alone", func(_, pilot *file) {
			message(pilot, "SyncRequest").Field = message(pilot, "SyncRequest").Field[:1]
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := &descriptorpb.FileDescriptorSet{}
			imports := File_pilot_proto.Imports()
			for i := range imports.Len() {
				set.File = append(set.File, protodesc.ToFileDescriptorProto(imports.Get(i)))
			}
			pilot := protodesc.ToFileDescriptorProto(File_pilot_proto)
			api := protodesc.ToFileDescriptorProto(File_api_proto)
			c.change(api, pilot)
			set.File = append(set.File, pilot, api)
			files, err := protodesc.NewFiles(set)
			if err != nil {
				t.Fatal(err)
			}
			changed, err := files.FindFileByPath(api.GetName())
			if err != nil {
				t.Fatal(err)
			}
			broken := breaks(facts(File_api_proto), facts(changed))
			switch found := strings.Join(broken, "\n"); {
			case c.want == "" && found != "":
				t.Errorf("breaks:\n%s", found)
			case c.want != "" && !strings.Contains(found, c.want):
				t.Errorf("breaks:\n%s\nwant:\n%s", found, c.want)
			}
		})
	}
}
