package folder

import (
	"path/filepath"
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
	PilotsSocket  = "pilot-socket" // of servers that stand by for each other: leads to the socket of the active one
	AuthorityName = "authority"    // of package access
	ServersName   = "servers"      // of package term
	UploadsName   = "uploads"      // of a lasting server: files that came with submissions, by run
	ArchiveName   = "archive"      // the same: stores of the records of retired runs
	SpareName     = "spare"        // the same: takes up room until the disk is full
	LastingName   = "lasting"      // the mark of the state of a lasting server
	ServiceName   = "service"      // of a lasting server: how its owner reaches it over the network
	PublicName    = "public"       // the same: how those reach it who have no token yet
	LinkName      = "link"         // to the pages, while a server has some
	AuditName     = "audit"        // the same: what people have done
)

// Layout are where a workflow folder keeps what. Those of a folder without a
// state have no ID, and no paths that depend on it.
type Layout struct {
	Workflow string
	State    string // .fairway
	Results  string
	ID       string // of the state
	New      bool   // Claim has just made the ID, so no pilot works for it

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

// Roots are what relative PFNs are relative to.
func (f *Layout) Roots() storage.Roots {
	return storage.Roots{State: f.Storage, Folder: f.Workflow}
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
	return storage.Join(f.Recorded(place), f.folderAt())
}

// Recorded is a place as the records of the state name it: one in the folder of the
// workflow is relative to that, and moves along with it.
func (f *Layout) Recorded(place string) string {
	if storage.Scheme(place) != "file" || !filepath.IsAbs(f.Workflow) {
		return place
	}
	path, err := storage.Path(place)
	if err != nil {
		return place
	}
	for _, as := range []func(string) string{filepath.Clean, resolved} {
		if name, err := filepath.Rel(as(f.Workflow), as(path)); err == nil && filepath.IsLocal(name) {
			return storage.Join(storage.FolderScheme+":", name)
		}
	}
	return place
}

// resolved is a path without links, as far as it is there.
func resolved(path string) string {
	for at, rest := path, ""; ; at, rest = filepath.Dir(at), filepath.Join(filepath.Base(at), rest) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}

// Absolute is a recorded place, or the PFN of a file there, as it is reached now.
func (f *Layout) Absolute(pfn string) string {
	if storage.Scheme(pfn) != storage.FolderScheme {
		return pfn
	}
	roots := f.Roots()
	path, err := roots.Path(pfn)
	if err != nil {
		return pfn
	}
	return "file:" + path
}

// folderAt is the folder of the state at other places.
func (f *Layout) folderAt() string { return storage.StorePrefix + f.ID + "/" }

// IsHidden reports whether an element of a pattern passes over a name that it matches:
// one that begins with a dot, or that of the folder in which some state stores outputs,
// unless the element begins so too.
func IsHidden(name, element string) bool {
	return strings.HasPrefix(name, ".") && !strings.HasPrefix(element, ".") ||
		storage.IsStore(name) && !strings.HasPrefix(element, storage.StorePrefix)
}

// Owns reports whether a PFN is that of a file which this state has stored: in its own
// storage element, or in the folder that bears its identity at another place.
func (f *Layout) Owns(pfn string) bool {
	_, own := storage.StateName(pfn)
	_, elsewhere := f.StoredName(pfn)
	return own || elsewhere
}

// StoredName is the name of a file that this state has stored at another place, in the
// folder there that bears its identity. It is the same by whatever way that folder is
// reached, and no other attempt has it.
func (f *Layout) StoredName(pfn string) (name string, ok bool) {
	if f.ID == "" {
		return "", false
	}
	_, behind, _ := strings.Cut(pfn, ":")
	_, name, ok = strings.Cut("/"+behind, "/"+f.folderAt())
	return name, ok
}
