package folder

import (
	"path/filepath"
	"regexp"
	"strings"

	"fairway/internal/storage"
)

// ResultsFolder is where published files appear, beside the workflow.
const ResultsFolder = "results"

// The folders of a state that may be links to other disks. Each holds one that
// is named by the state's identity, and only what is in that belongs to the
// state: several states may share them.
const (
	StorageName = "storage"
	cacheName   = "cache"
	sandboxName = "sandbox"
	logsName    = "logs"
	InputsName  = "inputs"
	pilotsName  = "pilots"
)

var sharedNames = []string{StorageName, cacheName, sandboxName, logsName, InputsName, pilotsName}

// Other names in the folder of a state.
const (
	lockName      = "lock"
	SocketName    = "socket"
	AuthorityName = "authority" // of package access
	ServersName   = "servers"   // of package term
)

// Layout are where a workflow folder keeps what. Those of a folder without a
// state have no ID, and no paths that depend on it.
type Layout struct {
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

func layoutOf(workflow, id string) Layout {
	state := filepath.Join(workflow, StateFolder)
	f := Layout{Workflow: workflow, State: state, Results: filepath.Join(workflow, ResultsFolder), ID: id}
	if id != "" {
		for i, path := range f.own() {
			*path = filepath.Join(state, sharedNames[i], id)
		}
	}
	return f
}

// own are those that are named by the identity, in the order of sharedNames.
func (f *Layout) own() []*string {
	return []*string{&f.Storage, &f.Cache, &f.Sandbox, &f.Logs, &f.Inputs, &f.Pilots}
}

// Of finds the folders of a workflow folder. They have no ID where
// nothing was run, or only in the folder that this one is a copy of.
func Of(workflow string) (Layout, error) {
	workflow, err := filepath.Abs(workflow)
	if err != nil {
		return Layout{}, err
	}
	state := filepath.Join(workflow, StateFolder)
	id, err := readIdentity(state)
	if err != nil {
		return Layout{}, err
	}
	if there, err := identify(state); id == nil || err != nil || !id.isOf(there) {
		return layoutOf(workflow, ""), nil
	}
	return layoutOf(workflow, id.ID), nil
}

// Places are what relative PFNs are relative to.
func (f *Layout) Places() storage.Places {
	return storage.Places{State: f.Storage, Folder: f.Workflow}
}

// StoragePrefix is how the PFNs of outputs begin that are in the local storage
// element.
const StoragePrefix = storage.StateScheme + ":"

// StorageAt is how the PFNs of outputs begin that are stored at a place, which is a PFN
// without a slash at its end: in a folder there that bears the identity of the state. An
// empty place is the local storage element.
func (f *Layout) StorageAt(place string) string {
	if place == "" {
		return StoragePrefix
	}
	return storage.Join(place, f.folderAt())
}

// storePrefix is how the name of the folder of a state at other places begins.
const storePrefix = "fairway-"

// folderAt is the folder of the state at other places.
func (f *Layout) folderAt() string { return storePrefix + f.ID + "/" }

var storeName = regexp.MustCompile(`^` + storePrefix + `[a-z2-7]{16}$`)

// IsHidden reports whether an element of a pattern passes over a name that it matches:
// one that begins with a dot, or that of the folder in which some state stores outputs,
// unless the element begins so too.
func IsHidden(name, element string) bool {
	return strings.HasPrefix(name, ".") && !strings.HasPrefix(element, ".") ||
		storeName.MatchString(name) && !strings.HasPrefix(element, storePrefix)
}

// Owns reports whether a PFN is that of a file which this state has stored: in its own
// storage element, or in the folder that bears its identity at another place.
func (f *Layout) Owns(pfn string) bool {
	_, own := storage.StateName(pfn)
	return own || f.ID != "" && strings.Contains(pfn, "/"+f.folderAt())
}
