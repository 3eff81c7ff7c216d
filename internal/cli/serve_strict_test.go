package cli

import (
	"io"
	"testing"

	"fairway/internal/cli/console"
)

// What a server is told counts besides what its own workflow asks for.
func TestStrictSandboxesOfAServer(t *testing.T) {
	for _, strict := range []bool{true, false} {
		o := &runOptions{
			workOptions:   workOptions{folder: t.TempDir(), file: "w.yaml", text: []byte("workflow: w\nopen: true\n"), strict: strict},
			serverOptions: serverOptions{lasting: true},
		}
		c := commandsOf(&console.Console{Out: io.Discard, Err: io.Discard})
		if _, err := c.serverConfig(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		if o.strict != strict {
			t.Errorf("with --strict-sandboxes=%v it is %v", strict, o.strict)
		}
	}
}
