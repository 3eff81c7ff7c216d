package rules

import (
	"go/ast"
	"go/token"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// This is the one list of them. Each imports only those of our packages that stand before it.
//
// A passive package is stepped by one caller at a time, gets the time as an
// argument and returns effects as data, so that a seed reproduces a run
// exactly and the server, the simulator and the tests run the same code.
var passive = []string{
	"lib/fifo", "internal/logical", "internal/quantity", "internal/legible", "internal/shelltext", "internal/yamlfile",
	"internal/eviction", "internal/taskqueue", "internal/explain", "internal/rights", "internal/rocrate",
	"internal/dispatch/rows", "internal/dispatch/estimate", "internal/dispatch/fairtree", "internal/dispatch/records",
	"internal/dispatch/results", "internal/dispatch/copies", "internal/dispatch/delay", "internal/dispatch/health",
	"internal/dispatch/pilotplan", "internal/dispatch/pools", "internal/dispatch/room", "internal/dispatch",
	"internal/flow/pattern", "internal/flow/workflow", "internal/flow/draft", "internal/flow", "internal/wfformat",
}

// outside is what a passive package does not import itself, and why.
var outside = map[string]string{
	"os": "it does no I/O", "net": "it does no I/O", "net/http": "it does no I/O", "syscall": "it does no I/O",
	"sync": "it has one caller at a time", "sync/atomic": "it has one caller at a time", "context": "it does not wait",
	"log": "it returns effects", "log/slog": "it returns effects", "crypto/rand": "a seed must reproduce a run",
}

// impure is what a passive package does not call, and why.
var impure = func() map[string]string {
	all := map[string]string{}
	for name := range strings.FieldsSeq("Now Since Until After AfterFunc Tick NewTimer NewTicker Sleep") {
		all["time."+name] = "a passive package gets the time as an argument"
	}
	for name := range strings.FieldsSeq("N Int IntN Int32 Int32N Int64 Int64N Uint32 Uint64 Float32 Float64 NormFloat64 " +
		"ExpFloat64 Perm Shuffle") {
		all["rand."+name] = "a passive package has no global random source"
	}
	return all
}()

func isPassive(folder string) bool { return slices.Contains(passive, folder) }

func TestPassivePackages(t *testing.T) {
	eachSource(t, func(s *source) {
		if !isPassive(s.folder) || s.test() {
			return
		}
		for _, imported := range s.syntax.Imports {
			path := strings.Trim(imported.Path.Value, `"`)
			ours, inside := strings.CutPrefix(path, "fairway/")
			switch why := outside[path]; {
			case inside && slices.Index(passive, ours) > slices.Index(passive, s.folder):
				complain(t, imported, "a passive package imports only those before it in the list")
			case why != "" && s.folder+" "+path != "internal/rights context": // which carries a principal
				complain(t, imported, "a passive package does not import "+path+": "+why)
			}
		}
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			switch n := node.(type) {
			case *ast.GoStmt:
				complain(t, n, "a passive package starts no goroutine")
			case *ast.SelectStmt, *ast.ChanType, *ast.SendStmt:
				complain(t, n, "a passive package has no channels")
			case *ast.UnaryExpr:
				if n.Op == token.ARROW {
					complain(t, n, "a passive package has no channels")
				}
			case *ast.SelectorExpr:
				if pkg, ok := n.X.(*ast.Ident); ok && impure[pkg.Name+"."+n.Sel.Name] != "" {
					complain(t, n, impure[pkg.Name+"."+n.Sel.Name])
				}
			}
			return true
		})
	})
}

// What a passive package imports must not bring in by a detour what it may not
// import itself.
func TestPassivePackagesDependOnNoOther(t *testing.T) {
	for _, folder := range passive {
		command := exec.Command("go", "list", "-deps", "fairway/"+folder)
		command.Dir = root
		out, err := command.Output()
		if err != nil {
			t.Errorf("%s: go list: %v", folder, err)
			continue
		}
		for dependency := range strings.FieldsSeq(string(out)) {
			ours, inside := strings.CutPrefix(dependency, "fairway/")
			if inside && !isPassive(ours) {
				t.Errorf("%s depends on %s, which is not passive", folder, ours)
			}
			if dependency == "net" || dependency == "os/exec" || strings.HasPrefix(dependency, "golang.org/x/sys") {
				t.Errorf("%s depends on %s", folder, dependency)
			}
		}
	}
}

// A test that sleeps is slow or flaky, and mostly both.
func TestNoTestSleeps(t *testing.T) {
	eachSource(t, func(s *source) {
		if !s.test() {
			return
		}
		ast.Inspect(s.syntax, func(node ast.Node) bool {
			selector, ok := node.(*ast.SelectorExpr)
			if !ok || selector.Sel.Name != "Sleep" {
				return true
			}
			if pkg, ok := selector.X.(*ast.Ident); ok && pkg.Name == "time" {
				complain(t, node, "a test does not sleep: use testing/synctest, a channel, or the product's own waits")
			}
			return true
		})
	})
}
