package sites_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/batch/batchtest"
	"fairway/test/files"
)

// onOneNode has jobs that do something else on one node, and tell where they began.
const onOneNode = `workflow: bad
inputs:
  numbers: {files: 'in/{n}.txt', as: 'in/{n}'}
steps:
  work:
    each: in/{n}
    writes: out/{n}
    command: |
      echo $(hostname) >> ${marks}/$n
      [ $(hostname) != n2 ] || ${there}
      sleep 1
      cp "$in" "$out"
`

// A node on which each command fails at once takes no job with it, and few attempts: the others do the work, and
// a person is told its name.
func TestSlurmBadNode(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("it needs root, to give nodes names")
	}
	t.Run("of four", func(t *testing.T) { oneNodeIsBad(t, 4) })
	t.Run("of eight", func(t *testing.T) {
		if os.Getenv(batchtest.Required) == "" {
			t.Skip("half a minute more: FAIRWAY_TEST_BATCH=slurm")
		}
		oneNodeIsBad(t, 8)
	})
}

func oneNodeIsBad(t *testing.T, number int) {
	batchtest.SlurmOf(t, batchtest.Nodes{Number: number}).NameHosts()
	const jobs, most = 100, 8
	for kind, there := range map[string]string{"fails": "exit 3", "lacks a program": "no-such-program"} {
		t.Run(kind, func(t *testing.T) {
			marks := t.TempDir()
			workflow := strings.NewReplacer("${marks}", marks, "${there}", there).Replace(onOneNode)
			folder := folderWith(t, workflow, strings.Replace(slurmSite, "max_pilots: 3", fmt.Sprint("max_pilots: ", number), 1))
			for i := range jobs {
				files.Write(t, filepath.Join(folder, fmt.Sprintf("in/%d.txt", i)), fmt.Sprint(i))
			}
			said := run(t, folder, "run", "--site", "cluster")
			lost, nodes := 0, map[string]bool{}
			for i := range jobs {
				text, err := os.ReadFile(filepath.Join(marks, fmt.Sprint(i)))
				if err != nil {
					t.Fatal(err)
				}
				for node := range strings.FieldsSeq(string(text)) {
					nodes[node] = true
					if node == "n2" {
						lost++
					}
				}
			}
			if lost == 0 || lost > most || len(nodes) != number {
				t.Errorf("%d attempts were lost, on nodes %v", lost, nodes)
			}
			if !strings.Contains(said, "node n2") {
				t.Errorf("the node is not named:\n%s", said)
			}
			if n := len(results(t, folder)); n != jobs {
				t.Errorf("%d results\n%s", n, said)
			}
			t.Logf("%d attempts were lost\n%s", lost, said)
		})
	}
}
