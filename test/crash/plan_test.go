package crash

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "fairway/internal/cli" // links all fault points of the binary
	"fairway/internal/fault"
)

// process is what a fault point kills.
type process string

const (
	theServer process = "server"
	aPilot    process = "pilot"
)

// place says where a fault point is, and on which layouts of files something is
// killed there: those on which a run reaches it and does something of its own.
type place struct {
	in process
	on []layout
}

var (
	linking = []layout{together}
	copying = []layout{scattered}
	both    = []layout{together, scattered}
)

// plan has every fault point of the code.
var plan = map[string]place{
	"batch.local.started":      {theServer, linking},
	"publish.asserted":         {theServer, nil}, // of servers that stand by: test/service freezes there
	"publish.before":           {theServer, both},
	"publish.elsewhere.before": {theServer, []layout{away}},
	"publish.linked":           {theServer, both},
	"publish.renamed":          {theServer, both},
	"remove.before":            {theServer, linking},
	"server.archive.before":    {theServer, nil}, // test/service kills there
	"server.letout.before":     {theServer, linking},
	"server.retire.before":     {theServer, nil}, // test/service kills there
	"server.sweep.before":      {theServer, nil}, // the same
	"store.apply.before":       {theServer, linking},
	"store.commit.after":       {theServer, linking},
	"store.commit.before":      {theServer, linking},
	"cache.add.named":          {aPilot, linking},
	"cache.add.reserved":       {aPilot, linking},
	"cache.add.written":        {aPilot, linking},
	"cache.drop.after":         {aPilot, copying},
	"cache.drop.before":        {aPilot, copying},
	"pilot.attempt.accepted":   {aPilot, linking},
	"pilot.attempt.ended":      {aPilot, linking},
	"pilot.command.after":      {aPilot, linking},
	"pilot.command.before":     {aPilot, linking},
	"pilot.folder.made":        {aPilot, linking},
	"pilot.folder.unlocked":    {aPilot, linking},
	"pilot.stagein.after":      {aPilot, linking},
	"pilot.stageout.after":     {aPilot, linking},
	"pilot.stageout.before":    {aPilot, linking},
	"pilot.sync.after":         {aPilot, linking},
	"pilot.sync.before":        {aPilot, linking},
	"storage.get.written":      {aPilot, copying},
	"storage.put.named":        {aPilot, both},
	"storage.put.written":      {aPilot, copying},
}

// TestPlanHasEveryPoint compares the plan with the calls of fault.New in the
// code, and with the points that the program knows.
func TestPlanHasEveryPoint(t *testing.T) {
	planned := slices.Sorted(maps.Keys(plan))
	if declared := declaredPoints(t); !slices.Equal(declared, planned) {
		t.Errorf("the code declares the fault points\n%v\nand the plan has\n%v", declared, planned)
	}
	if linked := fault.Names(); !slices.Equal(linked, planned) {
		t.Errorf("the program has the fault points\n%v\nand the plan has\n%v", linked, planned)
	}
}

// declaredPoints reads the code of the repository, tests left out.
func declaredPoints(t *testing.T) []string {
	t.Helper()
	var names []string
	err := filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && isFaultNew(call) {
				names = append(names, nameOf(t, path, call))
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

func isFaultNew(call *ast.CallExpr) bool {
	selector, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != "New" {
		return false
	}
	from, ok := selector.X.(*ast.Ident)
	return ok && from.Name == "fault"
}

func nameOf(t *testing.T, path string, call *ast.CallExpr) string {
	t.Helper()
	if len(call.Args) == 1 {
		if literal, ok := call.Args[0].(*ast.BasicLit); ok {
			if name, err := strconv.Unquote(literal.Value); err == nil {
				return name
			}
		}
	}
	t.Errorf("%s: the name of a fault point must stand there as a string", path)
	return ""
}

// missLimit is how often a run may pass by a fault point before that point
// counts as one that is never reached. A new folder reaches each of them once
// at least.
const missLimit = 3

// visit is a fault point at which nothing was killed yet.
type visit struct {
	point  string
	on     layout
	misses int
}

// visits are those that are still to be made.
type visits struct {
	t    *testing.T
	left []visit
}

// allVisits are those of the plan, in a random order.
func allVisits(t *testing.T, random *rand.Rand) *visits {
	v := &visits{t: t}
	for _, point := range slices.Sorted(maps.Keys(plan)) {
		for _, on := range plan[point].on {
			v.left = append(v.left, visit{point: point, on: on})
		}
	}
	random.Shuffle(len(v.left), func(i, j int) { v.left[i], v.left[j] = v.left[j], v.left[i] })
	return v
}

// take removes and returns the first visit that a layout allows.
func (v *visits) take(on layout) (visit, bool) {
	at := slices.IndexFunc(v.left, func(next visit) bool { return next.on == on })
	if at < 0 {
		return visit{}, false
	}
	next := v.left[at]
	v.left = slices.Delete(v.left, at, at+1)
	return next, true
}

// missed puts a visit in front again, for the next folder.
func (v *visits) missed(next visit) {
	if next.misses++; next.misses >= missLimit {
		v.t.Errorf("the fault point %s was not reached in %d runs with all files %s", next.point, missLimit, next.on)
		return
	}
	v.left = slices.Insert(v.left, 0, next)
}

// urgent reports whether the first visit was missed before: it needs a run from
// the beginning.
func (v *visits) urgent() bool { return len(v.left) > 0 && v.left[0].misses > 0 }
