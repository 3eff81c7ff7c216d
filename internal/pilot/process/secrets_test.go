package process

import "testing"

func TestSecretsOfTheEnvironment(t *testing.T) {
	for name, want := range map[string]bool{
		"AWS_SECRET_ACCESS_KEY": true, "AWS_PROFILE": true, "BEARER_TOKEN": true, "BEARER_TOKEN_FILE": true,
		"X509_USER_PROXY": true, "SSH_AUTH_SOCK": true,
		"MY_TOKEN": true, "DB_PASSWORD": true, "OPENAI_API_KEY": true, "XDG_RUNTIME_DIR": true,
		"PATH": false, "HOME": false, "LD_LIBRARY_PATH": false, "OMP_NUM_THREADS": false, "X509_CERT_DIR": false,
		"TOKENIZERS_PARALLELISM": false, "AWSOME": false,
	} {
		if IsSecret(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}
