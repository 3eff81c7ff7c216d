package process

import (
	"slices"
	"testing"
)

func TestCommandsGetNoSecretsOfThePilot(t *testing.T) {
	has := []string{
		"PATH=/bin", "FAIRWAY_PILOT_CONFIG={}", "AWS_SECRET_ACCESS_KEY=k", "AWS_PROFILE=p", "BEARER_TOKEN=t",
		"SLURM_EXPORT_ENV=PATH", "SLURM_JOB_ID=7", "PGPASSWORD=p",
		"CDPATH=/home", "OLDPWD=/home", "GLOBIGNORE=*.txt", "SHELLOPTS=noclobber", "BASHOPTS=nullglob",
		"GIT_DIR=/home/.git",
	}
	for _, test := range []struct{ named, want []string }{
		{nil, []string{"PATH=/bin", "AWS_PROFILE=p", "SLURM_JOB_ID=7"}},
		{[]string{"BEARER_TOKEN", "OTHER"}, []string{"PATH=/bin", "AWS_PROFILE=p", "BEARER_TOKEN=t", "SLURM_JOB_ID=7"}},
		{[]string{AllVariables}, []string{"PATH=/bin", "AWS_SECRET_ACCESS_KEY=k", "AWS_PROFILE=p", "BEARER_TOKEN=t",
			"SLURM_JOB_ID=7", "PGPASSWORD=p"}},
	} {
		if got := Inherited(has, test.named); !slices.Equal(got, test.want) {
			t.Errorf("named %v: got %v, want %v", test.named, got, test.want)
		}
	}
}

// The pilot reaches storage by what it keeps from its jobs.
func TestSecretsAreHandedToPilots(t *testing.T) {
	for _, name := range storageSecrets {
		if !slices.Contains(Handed, name) {
			t.Errorf("%s is not handed to pilots", name)
		}
	}
}

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
