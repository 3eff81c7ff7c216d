//go:build linux

package provision

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
)

// localPilots starts pilots on this machine, as there is work for them.
func (p *plan) localPilots(c *capacity) func(string, folder.Layout) (batch.System, error) {
	return func(address string, folders folder.Layout) (batch.System, error) {
		config := pilot.Config{
			Server:      address,
			Site:        server.LocalSite,
			SandboxDir:  folders.Sandbox,
			LogDir:      folders.Logs,
			Storage:     folders.StorageAt(p.config.Storage),
			Element:     folders.Storage,
			Workflow:    folders.Workflow,
			WatchInputs: pilot.WatchMode(p.WatchInputs),
			Sandbox:     SandboxMode(p.Strict, false),
			Unsummed:    !slices.ContainsFunc(p.Sites, func(name string) bool { return name != server.LocalSite }),
			Cache:       p.localCache(c, folders.Cache),
			MilliCPUs:   c.each.MilliCPUs,
			Memory:      c.each.Memory,
			Disk:        c.each.Disk,
			Countable:   c.each.Countable,
			Probe:       c.tools,
			Environment: p.Environment,
			KeepSandbox: p.KeepSandbox,
		}
		command, stdin, err := p.pilotProcess()
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
func (p *plan) pilotProcess() (command []string, stdin *os.File, err error) {
	self, err := os.Executable()
	if err != nil || !p.Attached {
		return []string{self, PilotCommand}, nil, err
	}
	return []string{self, PilotCommand, "--" + UntilStdinEnds}, os.Stdin, nil
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

// CacheAuto is the word for the cache that runs have without one: see pilot.CacheConfig.Spared.
const CacheAuto = "auto"

// cacheMode is the mode that a word of --cache stands for.
func cacheMode(word string) string {
	if word == CacheAuto {
		return string(pilot.CacheHost)
	}
	return word
}

// cacheShare of the free disk is the most that the caches of all pilots take
// unless a person says how much; the rest is for sandboxes and results.
const cacheShare = 0.5

func (p *plan) localCache(c *capacity, folder string) pilot.CacheConfig {
	if p.Cache == string(pilot.CacheNone) {
		return pilot.CacheConfig{Mode: pilot.CacheNone}
	}
	space := p.CacheSpace
	if space == 0 {
		space = min(pilot.DefaultCacheSpace, int64(cacheShare*float64(c.each.Disk)))
	}
	return pilot.CacheConfig{
		Mode: pilot.CacheMode(cacheMode(p.Cache)), Dir: folder, MaxSpace: space, Policy: eviction.Policy(p.CachePolicy),
		Spared: p.Cache == CacheAuto,
	}
}
