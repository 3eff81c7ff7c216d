package s3

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Whatever stands in a file of ~/.aws, no value of another profile is taken.
func FuzzProfiles(f *testing.F) {
	f.Add("[default]\naws_access_key_id = A\n# aws_secret_access_key = no\n[profile other]\nregion=eu\n", "other")
	f.Add("key = before\n[ x ]\n = \n[x\nk=v=w", "x")
	path := filepath.Join(f.TempDir(), "config")
	f.Fuzz(func(t *testing.T, text, profile string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		found, err := section(path, profile)
		if err != nil {
			return
		}
		for key, value := range found {
			if strings.ContainsAny(key+value, "\n") || !strings.Contains(text, value) || !strings.Contains(text, "[") {
				t.Fatalf("%q has %q", key, value)
			}
		}
		if more, err := section(path, profile+"-"+profile+"-none"); err == nil && len(more) > 0 &&
			!strings.Contains(text, "-none") {
			t.Fatalf("a profile that is not there has %v", more)
		}
	})
}
