package fairshare

import (
	"os"
	"strings"
	"testing"
)

// docs/keys.md has a row for each key.
func TestDocumentationHasEachKey(t *testing.T) {
	text, err := os.ReadFile("../../docs/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	has := func(name, help string) {
		if row := "| `" + name + "` | " + help + " |\n"; !strings.Contains(string(text), row) {
			t.Errorf("docs/keys.md lacks the row %s", row)
		}
	}
	for _, k := range FileKeys {
		has(k.Name, k.Help)
	}
	for _, k := range GroupKeys {
		has(k.Name, k.Help)
	}
}
