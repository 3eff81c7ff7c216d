package server

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/access"
	"fairway/internal/batch"
	"fairway/internal/pilot"
	"fairway/internal/server/folder"
	"fairway/internal/taskqueue"
	"fairway/test/files"
)

// beAPilot is what TestMain does where a test has started this program as a
// pilot.
func beAPilot(encoded, connect string) {
	var line *access.Line
	var err error
	if connect != "" {
		if line, err = access.OpenLine(connect); err == nil {
			encoded = string(line.Connection().Pilot)
		}
	}
	var cfg pilot.Config
	if err == nil {
		cfg, err = pilot.DecodeConfig(encoded)
	}
	if err == nil {
		cfg.Line = line
		err = pilot.Run(context.Background(), cfg)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// realPilots are pilots with a cache of so many bytes, as processes.
func realPilots(t *testing.T, space int64) func(string, folder.Layout) (batch.System, error) {
	return func(address string, folders folder.Layout) (batch.System, error) {
		return batch.NewLocal(batch.LocalConfig{
			LogDir: folders.Pilots, Command: []string{os.Args[0]},
			Environment: func(launch string) ([]string, error) {
				cfg := pilot.Config{
					Server: address, Launch: launch, Site: LocalSite, MilliCPUs: 1000,
					SandboxDir: folders.Sandbox, LogDir: folders.Logs, Storage: folder.StoragePrefix,
					Element: folders.Storage, Workflow: folders.Workflow,
					Cache: pilot.CacheConfig{Mode: pilot.CachePilot, Dir: folders.Cache, MaxSpace: space},
				}
				encoded, err := cfg.Encode()
				return []string{pilot.ConfigVariable + "=" + encoded}, err
			},
		})
	}
}

// A cache that has room for two files gives up the one that nobody will read,
// not the one that was read longest ago: the last job finds its input there
// although the file itself is gone.
func TestCacheFollowsTheOrderOfNextUse(t *testing.T) {
	const size = 100_000
	text := strings.Repeat("x", size)
	root := files.Folder(t, map[string]string{"in/a": text, "in/b": text, "in/c": text})
	r := newRun(t, root, fmt.Sprintf(`
workflow: advice
inputs:
  files: {files: "in/{name}", as: "raw/{name}"}
steps:
  first: {reads: raw/a, writes: one, command: wc -c raw/a > one}
  second: {reads: [raw/b, one], writes: two, command: wc -c raw/b > two}
  third: {reads: [raw/c, two], writes: three, command: rm %s && wc -c raw/c > three}
  fourth: {reads: [raw/a, three], writes: four, command: wc -c raw/a > four, retry: {attempts: 1}}
`, filepath.Join(root, "in/a")), nil)
	r.config.System = realPilots(t, 5*size/2)
	r.config.Site = taskqueue.Site{MaxPilots: 1, Pilot: taskqueue.Resources{MilliCPUs: 1000}}
	r.mustSucceed()
	if got := r.result("four"); !strings.HasPrefix(got, fmt.Sprint(size)) {
		t.Errorf("the last job found %q", got)
	}
}
