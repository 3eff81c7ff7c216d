package histories

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// project is a workflow with its inputs, as they are to be in a folder.
type project struct {
	steps  []*step
	word   string            // a parameter that some commands name
	number int               // a parameter that says how many jobs a step has
	files  map[string]string // contents of the inputs, by path
	made   int               // steps, ever
}

// The inputs: files of a pattern, a file that is rewritten, a list of logical
// names with a catalogue, and a folder that is watched until a file is there.
const (
	tableFile = "table.txt"
	listFile  = "list.txt"
)

const inputs = `inputs:
  in: {files: "in/{n}.txt", as: "raw/{n}.txt"}
  table: {files: table.txt}
  listed: {url_list: list.txt, catalog: storage.xml, match: "{n}.txt", as: "listed/{n}.txt", close: file closed, may_be_empty: true}
  watched: {watch: "drop/{n}.txt", as: "watched/{n}.txt", close: file closed, may_be_empty: true}
`

const catalogue = `<storage-mapping><lfn-to-pfn protocol="direct" path-match="/+store/(.*)" result="pool/$1"/></storage-mapping>
`

// newProject makes a random one.
func newProject(random *rand.Rand) *project {
	p := &project{word: "word", number: 2, files: map[string]string{
		"storage.xml": catalogue, "closed": "",
		listFile: "/store/x.txt\n/store/y.txt\n", "pool/x.txt": text(random), "pool/y.txt": text(random),
		"drop/v.txt": text(random), "drop/w.txt": text(random),
		tableFile: text(random) + "end\n",
	}}
	for _, name := range []string{"a1", "a2", "a10"}[:1+random.IntN(3)] {
		p.files["in/"+name+".txt"] = text(random)
	}
	for range 2 + random.IntN(4) {
		p.addStep(random)
	}
	return p
}

// text gives few different contents, often of the same size.
func text(random *rand.Rand) string {
	var b strings.Builder
	for range random.IntN(8) {
		fmt.Fprintf(&b, "%s%d\n", strings.Repeat("x", random.IntN(3)), random.IntN(10))
	}
	return b.String()
}

func (p *project) namesIn(folder string) []string {
	var names []string
	for _, path := range slices.Sorted(maps.Keys(p.files)) {
		if strings.HasPrefix(path, folder+"/") {
			names = append(names, path)
		}
	}
	return names
}

// workflow is the text of the workflow file. Every command appends the name of
// its job to the file log.
func (p *project) workflow(log string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "workflow: random\nparameters: {word: none, count: 1}\n%ssteps:\n", inputs)
	for _, s := range p.steps {
		b.WriteString(s.text(p, log))
	}
	return b.String()
}

// parameters are the arguments that set them.
func (p *project) parameters() []string {
	return []string{"--set", "word=" + p.word, "--set", fmt.Sprint("count=", p.number)}
}

// key tells projects apart that must not have the same results.
func (p *project) key() string {
	var b strings.Builder
	fmt.Fprint(&b, p.workflow(""), p.parameters())
	for _, path := range slices.Sorted(maps.Keys(p.files)) {
		fmt.Fprintf(&b, "%q %q", path, p.files[path])
	}
	return b.String()
}

// longAgo is when all files were changed last, unless they are changed later.
// It is so that watched files are taken at once.
var longAgo = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)

// write makes all files of the project in an empty folder.
func (p *project) write(t *testing.T, folder, log string) {
	t.Helper()
	write(t, filepath.Join(folder, "workflow.yaml"), p.workflow(log))
	for path, content := range p.files {
		write(t, filepath.Join(folder, path), content)
	}
}

// write replaces a file by one with another time of modification.
func write(t *testing.T, path, content string) {
	t.Helper()
	at := longAgo
	if info, err := os.Stat(path); err == nil {
		at = info.ModTime().Add(time.Microsecond)
	}
	writeAt(t, path, content, at)
}

func writeAt(t *testing.T, path, content string, at time.Time) {
	t.Helper()
	for _, err := range []error{
		os.MkdirAll(filepath.Dir(path), 0o755),
		os.WriteFile(path+".new", []byte(content), 0o644),
		os.Chtimes(path+".new", at, at),
		os.Rename(path+".new", path),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
}
