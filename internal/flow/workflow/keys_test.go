package workflow

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "make the JSON Schema and the tables of keys anew")

const (
	schemaFile     = "../../../schema/workflow.schema.json"
	schemaTemplate = "../../../schema/workflow.schema.template"
	reference      = "../../../docs/keys.md"
)

// describedKey is a key for whoever reads of it.
type describedKey struct{ name, help, value string }

func described[T any](keys []fileKey[T]) (all []describedKey) {
	for _, k := range keys {
		all = append(all, describedKey{k.name, k.help, k.value})
	}
	return all
}

// places are the mappings of a workflow file, by what the template of the schema calls them.
var places = map[string][]describedKey{
	"workflow": described(workflowKeys), "input": described(inputKeys), "catalog": described(catalogKeys),
	"step":      described(stepKeys),
	"container": described(containerKeys),
	"split":     described(splitKeys), "needs": described(needsKeys), "retry": described(retryKeys),
}

var link = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)

// property is a key in the schema.
func (k describedKey) property() string {
	help := strings.ReplaceAll(link.ReplaceAllString(k.help, "$1"), "`", "")
	value := k.value
	if !strings.HasPrefix(value, "{") {
		value = fmt.Sprintf(`{ "$ref": "#/$defs/%s" }`, value)
	}
	return fmt.Sprintf("%q: { \"description\": %q,%s", k.name, help, strings.TrimPrefix(value, "{"))
}

// The JSON Schema has the keys of the parser, with their help.
func TestSchemaIsCurrent(t *testing.T) {
	var made strings.Builder
	for line := range strings.Lines(read(t, schemaTemplate)) {
		place, ok := strings.CutPrefix(strings.TrimSpace(line), "@")
		if !ok {
			made.WriteString(line)
			continue
		}
		var properties []string
		for _, k := range places[place] {
			properties = append(properties, k.property())
		}
		made.WriteString(strings.Join(properties, ",\n") + "\n")
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, []byte(made.String()), "", "  "); err != nil {
		t.Fatal(err)
	}
	current(t, schemaFile, indented.String())
}

// The tables of keys in the documentation are those of the parser. A table begins with the place.
func TestTablesOfKeysAreCurrent(t *testing.T) {
	var made strings.Builder
	skipping, found := false, 0
	for line := range strings.Lines(read(t, reference)) {
		skipping = skipping && strings.HasPrefix(line, "|")
		if skipping {
			continue
		}
		made.WriteString(line)
		place, ok := strings.CutPrefix(strings.TrimSuffix(line, " | meaning |\n"), "| key of ")
		if !ok {
			continue
		}
		if keys := places[strings.Trim(strings.Fields(place + " .")[1], "`")]; keys != nil { // not those of other files
			skipping, found = true, found+1
			made.WriteString("| --- | --- |\n")
			for _, k := range keys {
				fmt.Fprintf(&made, "| `%s` | %s |\n", k.name, k.help)
			}
		}
	}
	if found != 3 {
		t.Errorf("%d tables of keys, and not those of the workflow, of an input and of a step", found)
	}
	current(t, reference, made.String())
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// current compares a file with what it is to be, or makes it so.
func current(t *testing.T, file, want string) {
	t.Helper()
	if read(t, file) == want {
		return
	}
	if !*update {
		t.Fatalf("%s is not what the keys of the parser give; run go test ./internal/flow/workflow -update", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
}
