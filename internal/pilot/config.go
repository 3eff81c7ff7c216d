package pilot

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"fairway/internal/access"
	"fairway/internal/catalog"
	"fairway/internal/eviction"
	"fairway/internal/pilot/report"
	"fairway/internal/pilot/stage"
	"fairway/internal/storage"
)

// ConfigVariable is the environment variable in which a pilot that is started
// by a batch system finds its Config, as JSON.
const ConfigVariable = "FAIRWAY_PILOT_CONFIG"

// Defaults and limits. Config tells what a limit means where it has a field.
const (
	DefaultLease    = 2 * time.Minute
	DefaultFarLease = 2 * time.Hour
	DefaultGrace    = 5 * time.Second
	DefaultLogBytes = 10 << 20
	DefaultLogPause = 5 * time.Second

	// HeapGrowth, in percent, is how much the pilot's small heap may grow before
	// it is collected, unless the environment variable GOGC says otherwise.
	HeapGrowth = 400

	// ReportInterval is how long reports are gathered while the pilot still
	// has more attempts to start than run. Without them they are sent at once. With 8 ms a job that
	// does nothing takes 2 % more of processors, with 40 ms there are 6 % fewer jobs a second.
	ReportInterval = 16 * time.Millisecond
	// MinBackoff and MaxBackoff bound the pause between calls while the
	// TaskQueue is away, and MaxFarBackoff where it is reached over a network. A
	// part of each pause is left to chance, so that pilots do not return together.
	MinBackoff    = 20 * time.Millisecond
	MaxBackoff    = time.Second
	MaxFarBackoff = 8 * time.Second
	// OrphanPatience is how long a pilot goes on without the TaskQueue when the program has ended for
	// which the run was opened: nobody may start another one.
	OrphanPatience = 3 * time.Second
	// CallMargin is how long after the promised next sync an answer is given up, or
	// the lease if that is shorter.
	CallMargin = 30 * time.Second
	// StoringInterval is how often the pilot tells how far it is while inputs do not come, or it stores the
	// outputs of an attempt that has many.
	StoringInterval = time.Second
	// FarewellTimeout bounds how long a pilot that leaves waits for its last
	// results to be acknowledged.
	FarewellTimeout = 10 * time.Second
)

// CacheMode says with whom a pilot shares its cache (paper 3, section IV-D).
type CacheMode string

// The modes of a cache.
const (
	CacheGlobal CacheMode = "global" // with all pilots of its site; on its host as CacheHost
	CacheHost   CacheMode = "host"   // with all pilots of its host
	CachePilot  CacheMode = "pilot"  // with nobody
	CacheNone   CacheMode = "none"   // there is no cache
)

// SandboxMode says for which attempts a pilot makes a view of their own. Its environment check
// fails if it must be able to and is not.
type SandboxMode string

// The modes of sandboxes.
const (
	SandboxSteps  SandboxMode = "steps"  // for those whose step asks for it; the pilot must be able to
	SandboxStrict SandboxMode = "strict" // for all
)

// Config is what a pilot needs to know. Zero fields mean their defaults.
type Config struct {
	// Server is the address of the TaskQueue on this machine, unix:PATH.
	Server string `json:"server,omitempty"`
	// Line is the way to the TaskQueue over a network, in place of Server. Launch
	// and Site are then those of its connection.
	Line *access.Line `json:"-"`
	// Program ends with the program for which the run was opened; nil: there is none. From then on
	// the pilot has little patience with a TaskQueue that does not answer (OrphanPatience).
	Program <-chan struct{} `json:"-"`
	// Pilot is the ID, unique for ever, and a file name. Default: Launch with a
	// random ending.
	Pilot string `json:"pilot,omitempty"`
	// Launch is the name under which the batch system started the pilot.
	Launch string `json:"launch"`
	Site   string `json:"site"`
	// Host is the name of the node. Default: os.Hostname.
	Host string `json:"host,omitempty"`

	// Scratch is the folder of the node that holds SandboxDir and the cache, and is
	// the state's alone. [Config.InScratch] sets all three. Empty: the pilot keeps
	// them where the state is, and cleans up less.
	Scratch string `json:"scratch,omitempty"`
	// SandboxDir, LogDir: folders for sandboxes and for what attempts print,
	// made as needed. The pilots of a host share them.
	SandboxDir string `json:"sandbox_dir"`
	// SpoolDir keeps results that the TaskQueue could not be told; any pilot that
	// starts with the same folder tells them. Default: report.SpoolFolder of SandboxDir.
	SpoolDir string `json:"spool_dir,omitempty"`
	LogDir   string `json:"log_dir"`
	// Storage is the prefix of the PFNs of outputs: "state:", "file:/..." or a
	// path.
	Storage string `json:"storage"`
	// Element is the folder of the state's own storage element, to which PFNs
	// that begin with "state:" are relative. Empty: the node does not reach it.
	Element string `json:"element,omitempty"`
	// Unsummed says that no pilot of another machine reads what this one stores: of large outputs
	// that are stored by a link, size and time of modification are told, and no sums.
	Unsummed bool `json:"unsummed,omitempty"`
	// Catalog is the file catalogue of the site: where files from outside are there. Nil: where the run
	// found them.
	Catalog *CatalogConfig `json:"catalog,omitempty"`
	// Cache is where files are kept for later jobs.
	Cache CacheConfig `json:"cache"`
	// Workflow is the folder of the workflow, to which PFNs that begin with
	// "folder:" are relative. Of a file there that a command misses in its
	// sandbox the result says how it is declared. Empty: none.
	Workflow string `json:"workflow,omitempty"`

	// Sandbox says what jobs see besides their own. Default: that their steps say.
	Sandbox SandboxMode `json:"sandbox,omitempty"`
	// WatchInputs says of which attempts the pilot watches what they open.
	// Default: WatchAuto.
	WatchInputs WatchMode `json:"watch_inputs,omitempty"`

	// MilliCPUs is what jobs may use, in thousandths of a processor. Default:
	// all processors.
	MilliCPUs int64 `json:"milli_cpus,omitempty"`
	// Memory, in bytes, that jobs may use. Default: nine tenths of what the
	// node or the pilot's cgroup has.
	Memory int64 `json:"memory,omitempty"`
	// Disk, in bytes, that sandboxes may use. Default: what is free at start.
	Disk int64 `json:"disk,omitempty"`
	// Countable is whatever else the site names.
	Countable map[string]int64 `json:"countable,omitempty"`
	// Life is how long the pilot may live; it ends what runs in time. Default:
	// unlimited.
	Life time.Duration `json:"life,omitempty"`
	// Check is a shell command that must succeed, or the pilot announces an error and
	// ends.
	Check string `json:"check,omitempty"`
	// Tools must be found in PATH, or the pilot announces an error and ends.
	Tools []string `json:"tools,omitempty"`
	// Environment names secrets of the pilot's environment that jobs get all the same
	// ([process.Inherited]).
	Environment []string `json:"environment,omitempty"`
	// Probe are programs that the pilot tells of if they are in PATH.
	Probe []string `json:"probe,omitempty"`

	// Lease is how long the pilot wants to go on while the TaskQueue does not
	// answer, from when the next answer is due. It gets as much of that as the
	// TaskQueue grants, which waits as long for the pilot. Default: DefaultLease,
	// with a Line DefaultFarLease.
	Lease time.Duration `json:"lease,omitempty"`
	// StallTime is how long an input that is read may bring nothing, before the attempt to
	// read it has failed. Default: storage.StallTime.
	StallTime time.Duration `json:"stall_time,omitempty"`
	// Grace is the time between SIGTERM and SIGKILL when a job is ended.
	Grace time.Duration `json:"grace,omitempty"`
	// KeepSandbox has the sandboxes of attempts that fail stay, up to
	// MaxKeptSandboxes of them, in KeptFolder of SandboxDir under the number of the
	// attempt.
	KeepSandbox bool `json:"keep_sandbox,omitempty"`
	// LogBytes is how much of standard output and of standard error each is
	// kept: of what goes beyond, the beginning and the end, with a notice between them.
	LogBytes int64 `json:"log_bytes,omitempty"`
	// LogPause is the pause between two times at which what running attempts have printed
	// goes to a server that shares no folder with the pilot. Default: DefaultLogPause.
	LogPause time.Duration `json:"log_pause,omitempty"`
}

// CatalogConfig is the file catalogue of a site.
type CatalogConfig struct {
	Text     string `json:"text"`     // a storage.xml or storage.json
	Protocol string `json:"protocol"` // whose rules are taken
}

// open reads the rules; nil is no catalogue.
func (c *CatalogConfig) open() (*stage.SiteCatalog, error) {
	if c == nil {
		return nil, nil
	}
	rules, err := catalog.Read([]byte(c.Text), "", "")
	if err != nil {
		return nil, fmt.Errorf("the catalogue of the site: %w", err)
	}
	return &stage.SiteCatalog{Rules: rules, Protocol: c.Protocol}, nil
}

// CacheConfig is a cache folder and its limits (paper 3, section IV-C).
type CacheConfig struct {
	// Mode: default is pilot when Dir is set, and none otherwise.
	Mode CacheMode `json:"mode,omitempty"`
	// Dir is the folder that holds the caches of all pilots of the host, each
	// in a folder named by the pilot's ID.
	Dir string `json:"dir,omitempty"`
	// MaxSpace, in bytes, is what this pilot brings; MinThreshold is the part of
	// that which is kept free for its jobs.
	MaxSpace     int64 `json:"max_space,omitempty"`
	MinThreshold int64 `json:"min_threshold,omitempty"`
	// Group has the pilots of several users of one group read each other's files on a node, and
	// is for caches that pilots share. The group is that of the folder in which Config.Scratch is
	// if that hands it down (setgid), else that of the pilot. See [Config.InScratch].
	Group bool `json:"group,omitempty"`
	// Spared leaves out files of which a link to where they are stored is as good.
	Spared bool `json:"spared,omitempty"`
	// Policy chooses what goes when there is no room. Default: eviction.NextUse.
	Policy eviction.Policy `json:"policy,omitempty"`
}

// DefaultCacheSpace is MaxSpace where it is not given, as in the paper.
const DefaultCacheSpace = 10 << 30

// Encode returns the Config as the value of ConfigVariable. It fails if a path in
// it is not UTF-8: JSON would name another one.
func (c *Config) Encode() (string, error) {
	for _, path := range []string{
		c.Server, c.Scratch, c.SandboxDir, c.LogDir, c.Storage, c.Element, c.Cache.Dir, c.Workflow, c.SpoolDir,
	} {
		if !utf8.ValidString(path) {
			return "", fmt.Errorf("the path %q is not UTF-8, so that pilots cannot be told of it; rename the folder", path)
		}
	}
	data, err := json.Marshal(c)
	return string(data), err
}

// DecodeConfig reads what Encode wrote.
func DecodeConfig(encoded string) (Config, error) {
	var c Config
	decoder := json.NewDecoder(strings.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return Config{}, fmt.Errorf("pilot configuration: %w", err)
	}
	return c, nil
}

func (c *Config) check() error {
	err := cmp.Or(
		c.checkNames(),
		oneOf("watch_inputs", c.WatchInputs, WatchAuto, WatchAll, WatchNone),
		c.Cache.check(c.Line != nil),
		c.checkFolders(),
	)
	if err != nil {
		return fmt.Errorf("pilot configuration: %w", err)
	}
	return nil
}

func (c *Config) checkNames() error {
	switch {
	case c.Server == "" && c.Line == nil:
		return errors.New("server is missing")
	case c.Launch == "" && c.Pilot == "":
		return errors.New("launch is missing")
	case strings.ContainsAny(c.Pilot, "/\x00") || strings.HasPrefix(c.Pilot, "."):
		return fmt.Errorf("the pilot's ID %q is not usable as a file name", c.Pilot)
	}
	return nil
}

// check is for a pilot that reaches the server over a network, or does not.
func (c *CacheConfig) check(network bool) error {
	switch err := oneOf("cache.mode", c.Mode, CacheGlobal, CacheHost, CachePilot, CacheNone); {
	case err != nil:
		return err
	case c.Mode == CacheGlobal && !network:
		return errors.New("cache mode global is for pilots that reach the server over a network; write host")
	case c.Mode != "" && c.Mode != CacheNone && c.Dir == "":
		return fmt.Errorf("cache mode %s needs cache.dir", c.Mode)
	case c.Group && c.Mode != CacheHost && c.Mode != CacheGlobal:
		return fmt.Errorf("cache.group is for caches that pilots share, not for the mode %q", c.Mode)
	}
	return nil
}

func (c *Config) checkFolders() error {
	if c.Scratch != "" && (!filepath.IsAbs(c.Scratch) || !strings.HasPrefix(filepath.Base(c.Scratch), ScratchPrefix)) {
		return fmt.Errorf("scratch must be an absolute path whose last element begins with %s, not %q",
			ScratchPrefix, c.Scratch)
	}
	return cmp.Or(absolute("sandbox_dir", c.SandboxDir), absolute("log_dir", c.LogDir),
		absolute("spool_dir", cmp.Or(c.SpoolDir, c.SandboxDir)))
}

func absolute(key, folder string) error {
	if !filepath.IsAbs(folder) {
		return fmt.Errorf("%s must be an absolute path, not %q", key, folder)
	}
	return nil
}

func oneOf[T ~string](key string, value T, known ...T) error {
	if value != "" && !slices.Contains(known, value) {
		return fmt.Errorf("%s %q is none of %q", key, value, known)
	}
	return nil
}

func (c *Config) connect() error {
	if c.Line == nil {
		return nil
	}
	at := c.Line.Connection()
	if c.Pilot != "" {
		return errors.New("pilot configuration: a pilot with a connection file has no ID of its own; leave pilot out")
	}
	c.Launch, c.Site = at.Launch, at.Site
	c.takeAllotment(context.Background(), os.Getenv)
	return c.onNode(os.Getenv)
}

// fill puts the defaults in that depend on no check of the environment.
func (c *Config) fill() error {
	c.scratchOfUser()
	if c.Pilot == "" {
		c.Pilot = c.Launch + "-" + randomName()
	}
	if c.Host == "" {
		host, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("name of this host: %w", err)
		}
		c.Host = host
	}
	if c.Line != nil {
		c.Lease = cmp.Or(c.Lease, DefaultFarLease)
	}
	c.Lease = cmp.Or(c.Lease, DefaultLease)
	c.SpoolDir = cmp.Or(c.SpoolDir, filepath.Join(c.SandboxDir, report.SpoolFolder))
	c.Grace = cmp.Or(c.Grace, DefaultGrace)
	c.StallTime = cmp.Or(c.StallTime, storage.StallTime)
	c.LogBytes = cmp.Or(c.LogBytes, DefaultLogBytes)
	c.LogPause = cmp.Or(c.LogPause, DefaultLogPause)
	c.WatchInputs = cmp.Or(c.WatchInputs, WatchAuto)
	c.Cache.MaxSpace = cmp.Or(c.Cache.MaxSpace, DefaultCacheSpace)
	if c.Cache.Mode == "" {
		c.Cache.Mode = CacheNone
		if c.Cache.Dir != "" {
			c.Cache.Mode = CachePilot
		}
	}
	return nil
}
