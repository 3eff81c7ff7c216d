package rights

import (
	"os"
	"strings"
	"testing"
)

// docs/keys.md has a row for each key, and docs/rights.md one for each role.
func TestDocumentationHasEachKey(t *testing.T) {
	text, err := os.ReadFile("../../docs/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	roles, err := os.ReadFile("../../docs/rights.md")
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
	for _, k := range LoginKeys {
		has(k.Name, k.Help)
	}
	for _, k := range ProxyKeys {
		has(k.Name, k.Help)
	}
	for _, role := range Roles {
		if !strings.Contains(string(roles), "| `"+string(role)+"` | ") {
			t.Errorf("docs/rights.md lacks the role %s", role)
		}
	}
}
