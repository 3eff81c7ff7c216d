package server

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"connectrpc.com/connect"

	"fairway/internal/server/api"
	"fairway/internal/server/state"
)

// What decides a run beside its workflow, by the names that a person has for it.
const (
	parametersDecide = "parameters"
	workflowDecides  = "workflow"
	flagsDecide      = "flags"
)

// meaning is a hash of each thing that decides the run of a submission, by its name: two submissions with
// the same ones begin the same run. digest is that of the workflow with its parameters.
func (b *submission) meaning(digest string, uploads []api.Upload) map[string]string {
	folder, scales := b.Folder, ""
	if len(uploads) > 0 {
		folder = "" // it is made for the run
	}
	if b.Scales != nil {
		scales = fmt.Sprint(*b.Scales)
	}
	parameters, _ := json.Marshal(b.Parameters) // sorted, and nothing of it can fail
	meaning := map[string]string{
		workflowDecides: hashed(digest), parametersDecide: hashed(string(parameters)), "folder": hashed(folder),
		"results": hashed(b.Results), "group": hashed(b.Account.Group, b.Scope),
		flagsDecide: hashed(b.Until, fmt.Sprint(b.KeepGoing), fmt.Sprint(b.NoReuse), scales, fmt.Sprint(b.Priority)),
	}
	var files []string
	for _, file := range slices.SortedFunc(slices.Values(uploads), func(a, b api.Upload) int {
		return strings.Compare(a.Path, b.Path)
	}) {
		files = append(files, file.Path, string(file.Content))
	}
	meaning["uploads"] = hashed(files...)
	return meaning
}

func hashed(parts ...string) string {
	sum := sha256.New()
	for _, part := range parts {
		_ = binary.Write(sum, binary.LittleEndian, uint64(len(part)))
		_, _ = sum.Write([]byte(part))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// refuseOther refuses a submission with the key of a run that it would not have begun. Of runs of earlier
// versions less is known.
func refuseOther(run *state.Run, meaning map[string]string, digest, results string) error {
	var differ []string
	for _, name := range slices.Sorted(maps.Keys(meaning)) {
		if run.Meaning != nil && run.Meaning[name] != meaning[name] {
			differ = append(differ, name)
		}
	}
	switch {
	case len(run.Meaning) == 0 && run.Digest != digest:
		differ = []string{"workflow or parameters"}
	case len(run.Meaning) == 0 && run.Results != results:
		differ = []string{"results"}
	case slices.Contains(differ, parametersDecide), slices.Contains(differ, flagsDecide): // they change the workflow, too
		differ = slices.DeleteFunc(differ, func(name string) bool { return name == workflowDecides })
	}
	if len(differ) == 0 {
		return nil
	}
	return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("the key %q is that of run %d, which was submitted "+
		"with other %s; give this submission a key of its own", run.Key, run.ID, strings.Join(differ, ", ")))
}
