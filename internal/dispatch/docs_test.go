package dispatch

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"fairway/internal/taskqueue"
)

func contentsOf(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// The loop of the package comment is the one that the example runs.
func TestDocumentedLoopIsTheExample(t *testing.T) {
	_, body, _ := strings.Cut(contentsOf(t, "example_test.go"), "func loop(")
	_, body, _ = strings.Cut(body, "{\n")
	body, _, found := strings.Cut(body, "\n}\n")
	if !found {
		t.Fatal("example_test.go has no loop")
	}
	commented := "//" + strings.ReplaceAll(body, "\n", "\n//")
	if !strings.Contains(contentsOf(t, "doc.go"), commented) {
		t.Errorf("doc.go does not show the loop of example_test.go:\n%s", commented)
	}
}

// arrow is a transition of the picture of a job's states.
var arrow = regexp.MustCompile(`(?m)^ +(\w+) --> (\w+):`)

// The picture in docs/states.md has the states that jobs have.
func TestPictureHasTheStatesOfJobs(t *testing.T) {
	_, picture, _ := strings.Cut(contentsOf(t, "../../docs/states.md"), "```mermaid\n")
	picture, _, _ = strings.Cut(picture, "```")
	drawn := map[string]bool{}
	for _, match := range arrow.FindAllStringSubmatch(picture, -1) {
		drawn[match[1]], drawn[match[2]] = true, true
	}
	for s := range taskqueue.Cancelled + 1 {
		state := s.String()
		if state != "" && !drawn[state] {
			t.Errorf("docs/states.md does not draw the state %s", state)
		}
		delete(drawn, state)
	}
	for name := range drawn {
		t.Errorf("docs/states.md draws %s, which is no state of a job", name)
	}
}
