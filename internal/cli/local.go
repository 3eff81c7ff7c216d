//go:build linux

package cli

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"

	"fairway/internal/batch"
	"fairway/internal/eviction"
	"fairway/internal/pilot"
	"fairway/internal/server"
	"fairway/internal/server/folder"
	"fairway/internal/taskqueue"
)

// localSite is this machine. Pilots are started as there is work for them.
func localSite(c *capacity) taskqueue.Site {
	return taskqueue.Site{
		Name: server.LocalSite, MaxPilots: c.pilots, Pilot: c.each, Tools: c.tools, FindsTools: c.findsTools,
	}
}

func localPilots(o *runOptions, c *capacity) func(string, folder.Layout) (batch.System, error) {
	return func(address string, folders folder.Layout) (batch.System, error) {
		config := pilot.Config{
			Server:      address,
			Site:        server.LocalSite,
			SandboxDir:  folders.Sandbox,
			LogDir:      folders.Logs,
			Storage:     folders.StorageAt(o.storage),
			Element:     folders.Storage,
			Workflow:    folders.Workflow,
			WatchInputs: pilot.WatchMode(o.watchInputs),
			Sandbox:     sandboxMode(o.strict, false),
			Unsummed:    !slices.ContainsFunc(o.sites, func(name string) bool { return name != server.LocalSite }),
			Cache:       cacheOf(o, c, folders.Cache),
			MilliCPUs:   c.each.MilliCPUs,
			Memory:      c.each.Memory,
			Disk:        c.each.Disk,
			Countable:   c.each.Countable,
			Probe:       c.tools,
			Environment: o.environment,
			KeepSandbox: o.keepSandbox,
		}
		command, stdin, err := pilotProcess(o)
		if err != nil {
			return nil, err
		}
		local, err := batch.NewLocal(batch.LocalConfig{
			Command: command,
			Stdin:   stdin,
			LogDir:  folders.Pilots,
			State:   folders.ID,
			New:     folders.New,
			Environment: func(launch string) ([]string, error) {
				config := config
				config.Launch = launch
				encoded, err := config.Encode()
				if err != nil {
					return nil, fmt.Errorf("configuring pilot %s: %w", launch, err)
				}
				return []string{pilot.ConfigVariable + "=" + encoded}, nil
			},
		})
		if err != nil {
			return nil, err
		}
		return tidySystem{local, folders.Sandbox}, nil
	}
}

// pilotProcess is the command of local pilots, and what they read. Those of a run that ends with its
// program read what the server reads, so that they end too where the server was killed.
func pilotProcess(o *runOptions) (command []string, stdin *os.File, err error) {
	self, err := os.Executable()
	if err != nil || !o.attached {
		return []string{self, pilotName}, nil, err
	}
	return []string{self, pilotName, "--" + untilStdinEnds}, os.Stdin, nil
}

// tidySystem removes what pilots that had to be killed have left, once all have
// ended: no other pilot may come here for long.
type tidySystem struct {
	batch.Notifier
	sandboxes string
}

func (s tidySystem) Close() error {
	return errors.Join(s.Notifier.Close(), pilot.CleanUp(s.sandboxes, slog.New(slog.DiscardHandler)))
}

// cacheAuto is the word for the cache that runs have without one: see pilot.CacheConfig.Spared.
const cacheAuto = "auto"

// cacheMode is the mode that a word of --cache stands for.
func cacheMode(word string) string {
	if word == cacheAuto {
		return string(pilot.CacheHost)
	}
	return word
}

// cacheShare of the free disk is the most that the caches of all pilots take
// unless a person says how much; the rest is for sandboxes and results.
const cacheShare = 0.5

func cacheOf(o *runOptions, c *capacity, folder string) pilot.CacheConfig {
	if o.cache == string(pilot.CacheNone) {
		return pilot.CacheConfig{Mode: pilot.CacheNone}
	}
	space := o.cacheSpace
	if space == 0 {
		space = min(pilot.DefaultCacheSpace, int64(cacheShare*float64(c.each.Disk)))
	}
	return pilot.CacheConfig{
		Mode: pilot.CacheMode(cacheMode(o.cache)), Dir: folder, MaxSpace: space, Policy: eviction.Policy(o.cachePolicy),
		Spared: o.cache == cacheAuto,
	}
}
