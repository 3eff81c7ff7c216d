package store

import (
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/records.txt again")

// recorded are the packages whose types are records, beside this one.
var recorded = []string{"dispatch", "dispatch/records", "flow", "server", "server/feed", "server/publish",
	"server/state", "taskqueue"}

// An older program passes over fields that it does not know, and loses them when it writes the record. So a
// store whose records have others has another version, which older programs refuse.
func TestRecordsThatChangeHaveAVersion(t *testing.T) {
	const path = "testdata/records.txt"
	fields := recordedFields(t)
	now := fmt.Sprintf("version %d\n", schemaVersion) + strings.Join(fields, "\n") + "\n"
	before, err := os.ReadFile(path)
	if err != nil && !*update {
		t.Fatal(err)
	}
	first, rest, _ := strings.Cut(string(before), "\n")
	said, _, _ := strings.Cut(now, "\n")
	switch {
	case string(before) == now:
	case *update && (first != said || err != nil):
		if err := os.WriteFile(path, []byte(now), 0o600); err != nil {
			t.Fatal(err)
		}
	case first == said:
		t.Errorf("records have other fields: make schemaVersion greater, and readableSince where older records "+
			"can not be read, then `go test ./internal/store -run %s -update`\n%s", t.Name(),
			differing(strings.Split(rest, "\n"), fields))
	default:
		t.Errorf("the version is another one: `go test ./internal/store -run %s -update`", t.Name())
	}
}

func differing(before, now []string) string {
	var b strings.Builder
	for _, line := range before {
		if line != "" && !slices.Contains(now, line) {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	for _, line := range now {
		if !slices.Contains(before, line) {
			fmt.Fprintf(&b, "+ %s\n", line)
		}
	}
	return b.String()
}

// recordedFields are all fields that stand in JSON, by package and type.
func recordedFields(t *testing.T) (fields []string) {
	t.Helper()
	for _, pkg := range recorded {
		paths, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Fatal(pkg, err)
		}
		for _, path := range paths {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.TypeSpec:
					fields = append(fields, fieldsOf(pkg+"."+n.Name.Name, n.Type)...)
				case *ast.CompositeLit:
					fields = append(fields, tabledFields(pkg, n)...)
				}
				return true
			})
		}
	}
	slices.Sort(fields)
	return fields
}

// tabledFields are those of a table by which a type is written and read.
func tabledFields(pkg string, table *ast.CompositeLit) (fields []string) {
	typ, ok := table.Type.(*ast.IndexExpr)
	if !ok || types.ExprString(typ.X) != "object" {
		return nil
	}
	for _, element := range table.Elts {
		if field, ok := element.(*ast.CallExpr); ok {
			fields = append(fields, fmt.Sprintf("%s.%s %s %s", pkg, types.ExprString(typ.Index), types.ExprString(field.Fun),
				types.ExprString(field.Args[0])))
		}
	}
	return fields
}

// qualifier is the package of a type. A type that moves to another one is the same in JSON.
var qualifier = regexp.MustCompile(`\b[a-z]+\.`)

func fieldsOf(name string, typ ast.Expr) (fields []string) {
	structure, ok := typ.(*ast.StructType)
	if !ok {
		return nil
	}
	for _, f := range structure.Fields.List {
		if f.Tag != nil && strings.Contains(f.Tag.Value, "json:") && !strings.Contains(f.Tag.Value, `json:"-"`) {
			typ := qualifier.ReplaceAllString(types.ExprString(f.Type), "")
			fields = append(fields, fmt.Sprintf("%s %s %s", name, typ, f.Tag.Value))
		}
	}
	return fields
}

// Archives of earlier versions stay readable; a store that is written to gets the version of this program.
func TestStoresOfAnEarlierVersionAreRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	s, err := OpenSQLite(path, ReadWrite)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.(*sqliteStore).conn.ExecContext(t.Context(), fmt.Sprintf("PRAGMA user_version = %d", readableSince))
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []Mode{ReadOnly, ReadWrite, ReadOnly} {
		s, err := OpenSQLite(path, mode)
		if err != nil {
			t.Fatalf("mode %d: %v", mode, err)
		}
		version, err := checkVersion(t.Context(), s.(*sqliteStore).conn)
		if err = errors.Join(err, s.Close()); err != nil || mode == ReadWrite && version != schemaVersion {
			t.Errorf("version %d, %v", version, err)
		}
	}
}
