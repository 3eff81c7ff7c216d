// Package site reads and changes the files that describe sites: a batch system each,
// with what to ask of it and how its nodes are set up. It says where the files are,
// refuses what is wrong in them with line and advice, and opens the batch system of a
// site.
//
// It knows neither jobs nor the protocol of pilots. What a pilot is told of its site,
// the caller puts into its settings.
package site

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"fairway/internal/batch/allocation"
	"fairway/internal/batch/command"
	"fairway/internal/catalog"
	"fairway/internal/eviction"
	"fairway/internal/yamlfile"
)

// Systems that no template describes.
const (
	SSH        = "ssh"        // hosts that are reached by ssh
	Allocation = "allocation" // the nodes of the job in which Fairway runs
	Command    = "command"    // a template of the person's own
)

// FileName is the name of a file of sites, beside a workflow or in the folder of the
// user's configuration.
const FileName = "sites.yaml"

// Limits.
const (
	// MaxFile bounds a file of sites, in bytes.
	MaxFile = 1 << 20
	// MaxPilots bounds max_pilots.
	MaxPilots = 100_000
	// MinLease and MaxLease bound lease.
	MinLease = time.Second
	MaxLease = 24 * time.Hour
)

// Defaults of keys.
const (
	DefaultMaxPilots   = 1
	DefaultIdleTimeout = 5 * time.Minute
	DefaultScratch     = "$TMPDIR"
)

// Who shares the cached files of a site.
const (
	CacheNone   = "none"
	CachePilot  = "pilot"
	CacheHost   = "host"
	CacheGlobal = "global" // all pilots of the site; on a host as with CacheHost
)

// Whose pilots share cached files on a node.
const (
	CacheOfUser  = "user"
	CacheOfGroup = "group" // of several users of one group
)

// Placements are the rules by which a site may have jobs go to its pilots.
var Placements = []string{"by-gain", "by-bytes", "by-files"}

var caches = []string{CacheGlobal, CacheHost, CachePilot, CacheNone}

// EnvironmentAll, in place of names of variables, stands for all.
const EnvironmentAll = "all"

// PilotMemory, in bytes, is asked of a batch system for the pilot itself, beside the memory
// that the site names for its jobs.
const PilotMemory = 256 << 20

// DefaultCacheSpace is the size of a pilot's cache at a site that does not say, in bytes.
const DefaultCacheSpace = 10 << 30

// What a site shares with the server.
const (
	SharesFolder  = "folder"  // all nodes see the folder of the workflow under the same path
	SharesNothing = "nothing" // nodes reach the server over the network only
)

// Site is a batch system, as a file describes it.
type Site struct {
	Name string
	File string // that describes it
	Line int    // where its description begins

	System        string
	Hosts         []string // of SSH
	MinPilots     int
	MaxPilots     int
	MinIdlePilots int
	Request       command.Request // what is asked of the batch system for a pilot
	Poll          time.Duration   // least time between two questions for the status; 0: the default
	IdleTimeout   time.Duration   // after which a pilot without a job leaves
	Lease         time.Duration   // for which pilots and server wait for each other; 0: the default
	Price         time.Duration   // that is worth a processor for an hour there, where there are other sites
	QueueWait     time.Duration   // of a pilot in the batch system, until pilots have shown it
	Near          string          // how the names of stored files begin that its nodes read as their own; empty: none do

	Strict bool // each job sees only its own files

	Check string           // a shell command that must succeed before a pilot takes jobs
	Tools []string         // programs that must be there
	Has   map[string]int64 // whatever else a pilot has that steps count, such as gpu

	Environment []string // variables of this process that its jobs get, or EnvironmentAll

	Modules []string // environment modules to load
	Setup   string   // shell commands before the pilot starts

	Scratch      string // folder of a node for sandboxes and caches; may begin with a variable
	Cache        string // who shares cached files; empty: it does not say
	GroupCache   bool   // pilots of several users of one group share files on a node
	Catalog      string // the file of its catalogue, relative to File; empty: there is none
	CatalogText  string // what that holds, once [Find] has read it
	CatalogRules string // the protocol whose rules are taken
	OutputFolder string // the logical folder in which its pilots store outputs; empty: it does not say
	OutputPlace  string // where the catalogue leads that folder, once [Find] has read it
	rules        *catalog.Catalog
	Placement    string          // by which of Placements jobs go to its pilots; empty: it does not say
	CacheWith    []string        // other sites with which cached files are exchanged
	CacheSpace   int64           // bytes of a pilot's cache; 0: the default
	MinThreshold int64           // so many of these each pilot keeps free for its jobs
	CachePolicy  eviction.Policy // which file goes first; empty: it does not say
	Shares       string

	Template *command.Template // nil with SSH and Allocation

	entered  *allocation.Allocation // of Allocation
	nodeCPUs int64                  // of the largest node of it
}

// Pace is the least time between two questions of a server to the batch system; 0: the default.
func (s *Site) Pace() time.Duration {
	if s.Poll == 0 && s.Template != nil {
		return s.Template.Poll
	}
	return s.Poll
}

// UserFile is the file of sites of the user.
func UserFile() (string, error) {
	folder, err := os.UserConfigDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(folder, "fairway", FileName), nil
}

// Files are the files in which sites of a workflow's folder may be described. What
// the first says wins.
func Files(folder string) ([]string, error) {
	user, err := UserFile()
	return []string{filepath.Join(folder, FileName), user}, err
}

// Load reads all sites that a workflow in a folder may use, in the order of the files.
func Load(folder string) ([]*Site, error) {
	files, err := Files(folder)
	if err != nil {
		return nil, err
	}
	var all []*Site
	known := map[string]bool{}
	for _, file := range files {
		data, err := readFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		sites, err := Parse(file, data)
		if err != nil {
			return nil, err
		}
		for _, s := range sites {
			if !known[s.Name] {
				known[s.Name] = true
				all = append(all, s)
			}
		}
	}
	return all, nil
}

// UnknownError says that no file describes a site.
type UnknownError struct {
	Name   string
	Files  []string
	Advice string
}

func (e *UnknownError) Error() string { return "there is no site " + e.Name }

// Find is the site of a name. The error may be an *UnknownError. The name of
// [Allocation] need not be described.
func Find(folder, name string) (*Site, error) {
	all, err := Load(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, s := range all {
		if s.Name == name {
			return s, s.readCatalog()
		}
		names = append(names, s.Name)
	}
	if name == Allocation {
		return &Site{
			Name: name, System: Allocation, IdleTimeout: DefaultIdleTimeout, Scratch: DefaultScratch, Shares: SharesFolder,
		}, nil
	}
	files, err := Files(folder)
	if err != nil {
		return nil, err
	}
	return nil, &UnknownError{name, files, yamlfile.DidYouMean(name, names)}
}
