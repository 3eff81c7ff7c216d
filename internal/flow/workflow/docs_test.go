package workflow

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var yamlBlock = regexp.MustCompile("(?s)```yaml\n(.*?)```")

// Every workflow in the documentation that has steps is right; what it leaves
// out (a name, the command) is added.
func TestDocumentedWorkflowsParse(t *testing.T) {
	files, _ := filepath.Glob("../../../docs/*.md")
	found := 0
	for _, file := range append(files, "../../../README.md", "../../../examples/README.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		for _, block := range yamlBlock.FindAllStringSubmatch(string(data), -1) {
			text := block[1]
			if !strings.Contains(text, "\nsteps:") || strings.Contains(text, "count: COMMAND") {
				continue
			}
			if !strings.HasPrefix(text, "workflow:") {
				text = "workflow: w\n" + text
			}
			found++
			if _, err := Parse(file, []byte(text)); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		}
	}
	if found < 3 {
		t.Errorf("found only %d workflows", found)
	}
}
