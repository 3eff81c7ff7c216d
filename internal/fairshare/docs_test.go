package fairshare

import (
	"os"
	"strings"
	"testing"
)

// docs/service.md has a row for each key.
func TestDocumentationHasEachKey(t *testing.T) {
	text, err := os.ReadFile("../../docs/service.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range [][]Key{FileKeys(), ShareKeys()} {
		for _, k := range keys {
			if row := "| `" + k.Name + "` | " + k.Help + " |\n"; !strings.Contains(string(text), row) {
				t.Errorf("docs/service.md lacks the row %s", row)
			}
		}
	}
}
