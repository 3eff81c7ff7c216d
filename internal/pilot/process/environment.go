package process

import (
	"slices"
	"strings"
)

// AllVariables, in place of names, stands for every variable of an environment.
const AllVariables = "all"

// Handed are the variables that a batch system is asked to hand over from where `fairway
// run` was called to a pilot, beside those that a site names: who the user is, where
// programs are, and how the pilot itself reaches storage.
var Handed = []string{
	"HOME", "LOGNAME", "PATH", "SHELL", "USER",
	"http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY",
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN",
	"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3",
	"AWS_PROFILE", "AWS_DEFAULT_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE",
	"BEARER_TOKEN", "BEARER_TOKEN_FILE", "X509_USER_PROXY", "X509_CERT_DIR",
}

// storageSecrets are variables whose values are secrets by which a pilot reaches storage. A job
// gets those only that are named for it.
var storageSecrets = []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "BEARER_TOKEN"}

// ofServer are variables whose values are secrets by which a server reaches its own records. Its local
// pilots inherit them, and a job gets those only that are named for it.
var ofServer = []string{"PGPASSWORD"}

// leading are variables by which a shell or git that calls Fairway has its own folder, files or options
// taken by what it calls: another folder than that of `cd NAME`, that before, files that no pattern
// fits, what a pattern or > means, another repository than that of the folder. What names a place
// where programs are (PATH, LD_LIBRARY_PATH, PYTHONPATH) stays, and so does BASH_ENV, by which clusters
// define their commands: a command goes back to its folder after it.
var leading = []string{
	"CDPATH", "OLDPWD", "GLOBIGNORE", "SHELLOPTS", "BASHOPTS",
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_COMMON_DIR", "GIT_PREFIX",
}

// exportOfPilot is what Slurm keeps of how the job of the pilot was submitted; to srun in a
// command it would say to pass on no other variables than those.
const exportOfPilot = "SLURM_EXPORT_ENV"

// ownPrefix begins the names of Fairway's own variables: settings of the pilot, and what
// it tells each command anew.
const ownPrefix = "FAIRWAY_"

// Inherited returns what commands get of the environment of their pilot: everything but
// Fairway's own variables, those secrets of the pilot that are not named, and what would lead them
// out of their sandboxes. AllVariables among the names names all secrets.
func Inherited(environment, named []string) (inherited []string) {
	all := slices.Contains(named, AllVariables)
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasPrefix(name, ownPrefix), name == exportOfPilot, slices.Contains(leading, name):
		case slices.Contains(slices.Concat(storageSecrets, ofServer), name) && !all && !slices.Contains(named, name):
		default:
			inherited = append(inherited, entry)
		}
	}
	return inherited
}

// secrets are the variables of the environment, or how their names begin (with *), by which
// programs find keys and tokens: with them a command may act as the user does.
var secrets = []string{
	"AWS_*", "BEARER_TOKEN*", "X509_USER_*", "SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "KRB5CCNAME",
	"KUBECONFIG", "PGPASSWORD", "PGPASSFILE", "MYSQL_PWD",
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
