package pilot

import (
	"os"
	"path/filepath"
	"regexp"
)

// notFound is how programs say that a file is not there.
var notFound = regexp.MustCompile(`(?m)([^\s:'"‘’]+)['"’]?: No such file or directory|No such file or directory: ['"]([^'"]+)['"]|(?:cannot|could not|can't|failed to) open (?:file )?['"‘]?([^\s:'"‘’]+)`)

// undeclaredIn returns a hint if a failed command missed a file, since it may
// be one that its step does not declare: a sandbox holds nothing else.
func undeclaredIn(said, workflow string) string {
	match := notFound.FindStringSubmatch(said)
	if match == nil {
		return ""
	}
	for _, name := range match[1:] {
		if name == "" {
			continue
		}
		hint := "it found no file " + name + ": a job sees only the files that its step declares in reads"
		if workflow != "" && filepath.IsLocal(name) {
			if _, err := os.Stat(filepath.Join(workflow, name)); err == nil {
				hint += " (there is one in the folder of the workflow: make it an input)"
			}
		}
		return hint
	}
	return ""
}
