package served

import (
	"testing"

	"fairway/internal/logical"
	"fairway/internal/storage"
)

// An attempt may give its checkpoint a name for each time that it is stored, and no other one.
func TestNamesOfCheckpoints(t *testing.T) {
	for _, prefix := range []string{"state:", "root://se//data/", "https://se/da*ta"} {
		pattern := CheckpointPattern(prefix, "state*/", 9)
		for version := range uint32(12) {
			if name := storage.OutputPFN(prefix, "state*/", version, 9); !logical.Matches(pattern, name) {
				t.Errorf("%s does not allow %s", pattern, name)
			}
		}
		for _, name := range []string{
			storage.OutputPFN(prefix, "state*/", 1, 8), storage.OutputPFN(prefix, "state1/", 1, 9),
			storage.OutputPFN(prefix, "state*/x", 1, 9),
		} {
			if logical.Matches(pattern, name) {
				t.Errorf("%s allows %s", pattern, name)
			}
		}
	}
}
