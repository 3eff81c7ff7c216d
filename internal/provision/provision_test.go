//go:build linux

package provision

import (
	"testing"

	"fairway/internal/flow/workflow"
	"fairway/internal/server"
)

// A server that takes workflows has no workflow itself. What it is told counts for those to come.
func TestStrictSandboxesOfAServer(t *testing.T) {
	for _, strict := range []bool{true, false} {
		config := server.Config{
			RunConfig: server.RunConfig{Folder: t.TempDir()}, ServiceConfig: server.ServiceConfig{Lasting: true},
		}
		if err := Provide(t.Context(), &Options{Cache: CacheAuto, Strict: strict}, &config); err != nil {
			t.Fatal(err)
		}
		if !config.Site.FindsTools || config.System == nil {
			t.Error("no pilots of this machine would look for what jobs name later")
		}
		err := config.Check([]workflow.Demand{{Strict: true}}, nil, false)
		if (err == nil) != strict {
			t.Errorf("with Strict %v, a step that asks for a strict sandbox gets %v", strict, err)
		}
	}
}
