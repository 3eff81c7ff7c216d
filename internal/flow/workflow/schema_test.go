package workflow

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"fairway/schema"
)

func compiledSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema.Workflow))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("workflow.schema.json", document); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("workflow.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// validate checks a workflow as an editor does.
func validate(t *testing.T, s *jsonschema.Schema, data []byte) error {
	t.Helper()
	var root yaml.Node
	if err := yaml.Unmarshal(hidePlaceholders(data), &root); err != nil {
		t.Fatal(err)
	}
	unhide(&root)
	var value any
	if err := root.Decode(&value); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(instance)
}

// texts are right workflows: the examples, and those that the tests of package flow run.
func texts(t testing.TB) map[string][]byte {
	t.Helper()
	files, _ := filepath.Glob("../../../examples/*/workflow.yaml")
	own, _ := filepath.Glob("testdata/*.yaml")
	texts := map[string][]byte{}
	for _, file := range append(files, own...) {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = data
	}
	if len(files) == 0 || len(own) == 0 {
		t.Fatal("no examples")
	}
	return texts
}

func TestSchemaTakesRightWorkflows(t *testing.T) {
	s := compiledSchema(t)
	for name, text := range texts(t) {
		if _, err := Parse(name, text); err != nil {
			t.Error(err)
		}
		if err := validate(t, s, text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSchemaRefusesWhatTheParserRefuses(t *testing.T) {
	s := compiledSchema(t)
	for _, text := range []string{
		"workflow: w\n",
		"workflow: w\nsteps: {a: {write: x, command: 'true'}}\n",
		"workflow: w\nsteps: {a: {writes: x}}\n",
		"workflow: w\nsteps: {a: {writes: x, command: 'true', files: 3}}\n",
		"workflow: w\nsteps: {a: {writes: x, command: 'true', needs: {memory: lots}}}\n",
		"workflow: w\nsteps: {a: {writes: x, command: 'true', storage: moon}}\n",
		"workflow: w\ninputs: {i: {files: x, watch: y}}\nsteps: {a: {writes: x, command: 'true'}}\n",
		"workflow: w\ninputs: {i: {watch: x, close: soon}}\nsteps: {a: {reads: x, writes: y, command: 'true'}}\n",
	} {
		if _, err := Parse("t.yaml", []byte(text)); err == nil {
			t.Errorf("the parser takes %s", text)
		}
		if validate(t, s, []byte(text)) == nil {
			t.Errorf("the schema takes %s", text)
		}
	}
}
