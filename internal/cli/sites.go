package cli

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"fairway/internal/batch"
	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/pilot"
	"fairway/internal/server"
	"fairway/internal/server/folder"
	"fairway/internal/site"
	"fairway/internal/yamlfile"
)

// runsLocally says that pilots of a run are started on this machine: no site is named,
// or local is one of them.
func (o *runOptions) runsLocally() bool {
	return len(o.sites) == 0 || slices.Contains(o.sites, server.LocalSite)
}

// farSites are those that the person has named, but this machine.
func farSites(workflow *flow.Workflow, o *runOptions) (sites []server.Site, err error) {
	named := map[string]bool{}
	for _, name := range o.sites {
		if name == server.LocalSite || named[name] {
			continue
		}
		named[name] = true
		s, err := findSite(o.folder, name)
		if err != nil {
			return nil, err
		}
		if s.Shares == site.SharesNothing {
			return nil, fail(exitUsage, "put the folder of the workflow where the nodes see it, and write `shares: folder`", "the site %s shares nothing with this machine, and %s:%d says so; runs need the folder of the workflow there", name, displayPath(s.File), s.Line)
		}
		sites = append(sites, farSite(s, workflow, o))
	}
	return sites, nil
}

// findSite is a site that a file describes.
func findSite(folder, name string) (*site.Site, error) {
	s, err := site.Find(folder, name)
	if unknown, ok := errors.AsType[*site.UnknownError](err); ok {
		return nil, fail(exitNotFound, unknown.Advice+"; `fairway site add "+name+" --system slurm` describes it",
			"there is no site %s in %s", name, strings.Join(each(unknown.Files, displayPath), " or "))
	}
	if problems, ok := errors.AsType[yamlfile.Problems](err); ok {
		return nil, problems
	}
	return s, err
}

func each[A, B any](all []A, make func(A) B) (made []B) {
	for _, a := range all {
		made = append(made, make(a))
	}
	return made
}

// unknownAmount stands for what only the nodes of a site know.
const unknownAmount = math.MaxInt64 / 4

// farSite is a site for the server. Which tools are there the pilots find out.
func farSite(s *site.Site, workflow *flow.Workflow, o *runOptions) server.Site {
	tools := slices.Clone(s.Tools)
	for _, demand := range workflow.Demands() {
		tools = append(tools, demand.Tools...)
	}
	slices.Sort(tools)
	tools = slices.Compact(tools)
	has := dispatch.Resources{MilliCPUs: s.Request.CPUs * 1000, Memory: s.Request.Memory, Disk: unknownAmount, Time: s.Request.Time}
	if has.MilliCPUs == 0 {
		has.MilliCPUs = mostCPUs(workflow, s)
	}
	if has.Memory == 0 {
		has.Memory = unknownAmount
	}
	return server.Site{
		Site: dispatch.Site{
			Name: s.Name, MinPilots: s.MinPilots, MaxPilots: s.MaxPilots, MinIdlePilots: s.MinIdlePilots, Pilot: has, Tools: tools,
		},
		Poll: s.Poll,
		System: func(l folder.Layout, connection func(string, any) (string, error)) (batch.System, error) {
			program, err := copyProgram(filepath.Join(l.Pilots, "bin"))
			if err != nil {
				return nil, fmt.Errorf("copying this program for the nodes: %w", err)
			}
			settings := farPilot(s, tools, l, o)
			return s.Open(site.Place{
				State: l.ID, Folder: l.Pilots, Program: program,
				Arguments: func(launch string) ([]string, error) {
					file, err := connection(launch, settings)
					return []string{"pilot", "--connect", file}, err
				},
				Log: func(launch string) string { return filepath.Join(l.Pilots, launch+".log") },
			})
		},
	}
}

// mostCPUs stands for the processors of a node where the description does not say how
// many it has: as many as a job needs, or one. Until pilots have come, there is one for
// each such job, and so rather too many than none.
func mostCPUs(workflow *flow.Workflow, s *site.Site) int64 {
	most := int64(1000)
	if s.AsksWholeNode() {
		for _, demand := range workflow.Demands() {
			most = max(most, demand.Needs.MilliCPUs)
		}
	}
	return most
}

// farPilot are the settings of the pilots of a site. Folders on the node may begin with
// a variable, which has its value there.
func farPilot(s *site.Site, tools []string, l folder.Layout, o *runOptions) *pilot.Config {
	c := &pilot.Config{
		LogDir:      l.Logs,
		Storage:     folder.StoragePrefix,
		Element:     l.Storage,
		Workflow:    l.Workflow,
		WatchInputs: pilot.WatchMode(o.watchInputs),
		Life:        s.Request.Time,
		IdleTime:    s.IdleTimeout,
		Lease:       s.Lease,
		Check:       s.Check,
		Tools:       s.Tools,
		Probe:       slices.DeleteFunc(slices.Clone(tools), func(tool string) bool { return slices.Contains(s.Tools, tool) }),
		KeepSandbox: o.keepSandbox,
	}
	if s.System == site.SSH { // which does not divide a host by itself
		c.MilliCPUs, c.Memory = s.Request.CPUs*1000, s.Request.Memory
	}
	if s.MinPilots > 0 || s.MinIdlePilots > 0 {
		c.IdleTime = 0 // they are to stay without work
	}
	c.Cache = pilot.CacheConfig{Mode: pilot.CacheMode(o.cache)}
	if c.Cache.Mode != pilot.CacheNone {
		c.Cache.MaxSpace = max(s.CacheSpace, o.cacheSpace)
	}
	c.InScratch(filepath.Join(s.Scratch, pilot.ScratchPrefix+l.ID))
	return c
}

// copyProgram puts this program into a folder that nodes see, under a name that tells
// its contents from those of other versions: pilots that wait in a queue start the one
// that they were submitted with.
func copyProgram(dir string) (string, error) {
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		return "", err
	}
	defer self.Close()
	hash := blake3.New()
	if _, err := io.Copy(hash, self); err != nil {
		return "", err
	}
	path := filepath.Join(dir, fmt.Sprintf("fairway-%x", hash.Sum(nil)[:12]))
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	fresh, err := os.CreateTemp(dir, "fairway-*.new")
	if err != nil {
		return "", err
	}
	_, err = self.Seek(0, io.SeekStart)
	if err == nil {
		_, err = io.Copy(fresh, self)
	}
	err = errors.Join(err, fresh.Chmod(0o700), fresh.Sync(), fresh.Close())
	if err == nil {
		err = os.Rename(fresh.Name(), path)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(fresh.Name()))
	}
	return path, nil
}
