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
	for _, keys := range [][]Key{FileKeys(), ShareKeys()} {
		for _, k := range keys {
			if row := "| `" + k.Name + "` | " + k.Help + " |\n"; !strings.Contains(string(text), row) {
				t.Errorf("docs/keys.md lacks the row %s", row)
			}
		}
	}
}
