package server

import (
	"path/filepath"

	"fairway/internal/storage"
)

// ResultsFolder is where published files appear, beside the workflow.
const ResultsFolder = "results"

// The folders of a state that may be links to other disks. Each holds one that
// is named by the state's identity, and only what is in that belongs to the
// state: several states may share them.
const (
	storageName = "storage"
	cacheName   = "cache"
	sandboxName = "sandbox"
	logsName    = "logs"
)

var sharedNames = []string{storageName, cacheName, sandboxName, logsName}

// Other names in the folder of a state.
const (
	lockName   = "lock"
	socketName = "socket"
	inputsName = "inputs"
	pilotsName = "pilots"
)

// Folders are where a workflow folder keeps what. Those of a folder without a
// state have no ID, and no paths that depend on it.
type Folders struct {
	Workflow string
	State    string // .fairway
	Results  string
	ID       string // of the state

	Storage string // the local storage element
	Cache   string // the caches of local pilots
	Sandbox string // where attempts run
	Logs    string // what attempts printed
	Inputs  string // the files of a trace
	Pilots  string // what pilots say themselves
}

func foldersOf(workflow, id string) Folders {
	state := filepath.Join(workflow, StateFolder)
	f := Folders{
		Workflow: workflow, State: state, Results: filepath.Join(workflow, ResultsFolder), ID: id,
		Inputs: filepath.Join(state, inputsName), Pilots: filepath.Join(state, pilotsName),
	}
	if id != "" {
		for name, path := range map[string]*string{storageName: &f.Storage, cacheName: &f.Cache, sandboxName: &f.Sandbox, logsName: &f.Logs} {
			*path = filepath.Join(state, name, id)
		}
	}
	return f
}

// FoldersOf finds the folders of a workflow folder. They have no ID where
// nothing was run, or only in the folder that this one is a copy of.
func FoldersOf(workflow string) (Folders, error) {
	workflow, err := filepath.Abs(workflow)
	if err != nil {
		return Folders{}, err
	}
	state := filepath.Join(workflow, StateFolder)
	id, err := readIdentity(state)
	if err != nil {
		return Folders{}, err
	}
	if there, err := identify(state); id == nil || err != nil || !id.isOf(there) {
		return foldersOf(workflow, ""), nil
	}
	return foldersOf(workflow, id.ID), nil
}

// Places are what relative PFNs are relative to.
func (f *Folders) Places() storage.Places {
	return storage.Places{State: f.Storage, Folder: f.Workflow}
}

// StoragePrefix is how the PFNs of outputs begin that are in the local storage
// element.
const StoragePrefix = storage.StateScheme + ":"
