package process

import "strings"

// secrets are the variables of the environment, or how their names begin (with *), by which
// programs find keys and tokens: with them a command may act as the user does.
var secrets = []string{
	"AWS_*", "BEARER_TOKEN*", "X509_USER_*", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "KRB5CCNAME",
	"KUBECONFIG",
	"GOOGLE_APPLICATION_CREDENTIALS", "AZURE_*", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "HF_TOKEN",
	"DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR",
}

// IsSecret reports whether a variable of the environment holds a secret, or leads to one. What a
// step defines is never asked.
func IsSecret(name string) bool {
	for _, secret := range secrets {
		beginning, open := strings.CutSuffix(secret, "*")
		if name == secret || open && strings.HasPrefix(name, beginning) {
			return true
		}
	}
	for _, ending := range []string{"_TOKEN", "_SECRET", "_PASSWORD", "_API_KEY", "_SECRET_KEY"} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return false
}
