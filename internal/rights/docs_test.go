package rights

import (
	"os"
	"strings"
	"testing"
)

// docs/rights.md has a row for each key, and for each role.
func TestDocumentationHasEachKey(t *testing.T) {
	text, err := os.ReadFile("../../docs/rights.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, keys := range [][]Key{FileKeys, LoginKeys, ProxyKeys} {
		for _, k := range keys {
			if row := "| `" + k.Name + "` | " + k.Help + " |\n"; !strings.Contains(string(text), row) {
				t.Errorf("docs/rights.md lacks the row %s", row)
			}
		}
	}
	for _, role := range Roles {
		if !strings.Contains(string(text), "| `"+string(role)+"` | ") {
			t.Errorf("docs/rights.md lacks the role %s", role)
		}
	}
}
