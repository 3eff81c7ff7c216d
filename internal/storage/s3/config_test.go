package s3

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Keys, region and server are taken from where other tools of S3 take them: the environment
// before ~/.aws, and there those of the profile. What is printed of them has no keys.
func TestConfigIsThatOfTheUser(t *testing.T) {
	home := t.TempDir()
	if err := os.Mkdir(home+"/.aws", 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"credentials": "[default]\naws_access_key_id = A\naws_secret_access_key=B\n[work]\naws_access_key_id = C\naws_secret_access_key = D=\naws_session_token = E\n",
		"config":      "[default]\nregion = r1\n\n[profile work]\nregion = r2\nendpoint_url = http://work:1\n",
	} {
		if err := os.WriteFile(home+"/.aws/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	other := home + "/other"
	if err := os.WriteFile(other, []byte("[default]\naws_access_key_id=F\naws_secret_access_key=G\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		environment string
		want        Config
	}{
		"the files":          {"", Config{"", "r1", "A", "B", ""}},
		"a profile":          {"AWS_PROFILE=work", Config{"http://work:1", "r2", "C", "D=", "E"}},
		"keys first":         {"AWS_PROFILE=work AWS_ACCESS_KEY_ID=X AWS_SECRET_ACCESS_KEY=Y", Config{"http://work:1", "r2", "X", "Y", ""}},
		"a server, a region": {"AWS_ENDPOINT_URL=http://all AWS_ENDPOINT_URL_S3=http://s3 AWS_REGION=r3 AWS_DEFAULT_REGION=r4", Config{"http://s3", "r3", "A", "B", ""}},
		"another file":       {"AWS_SHARED_CREDENTIALS_FILE=" + other + " AWS_CONFIG_FILE=/none", Config{"", "", "F", "G", ""}},
		"nothing":            {"HOME=/none", Config{}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, entry := range os.Environ() {
				if variable, _, _ := strings.Cut(entry, "="); strings.HasPrefix(variable, "AWS_") {
					t.Setenv(variable, "")
				}
			}
			t.Setenv("HOME", home)
			for entry := range strings.FieldsSeq(c.environment) {
				variable, value, _ := strings.Cut(entry, "=")
				t.Setenv(variable, value)
			}
			got, err := ConfigOfUser()
			if err != nil || got != c.want {
				t.Errorf("%v, want %v; %v", got, c.want, err)
			}
			if shown := fmt.Sprintf("%v %+v %#v %s", got, got, got, got); got.SecretKey != "" &&
				strings.Contains(shown, got.SecretKey) {
				t.Errorf("shown as %s", shown)
			}
		})
	}
}
