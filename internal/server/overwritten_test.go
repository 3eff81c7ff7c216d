package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"fairway/internal/batch"
	"fairway/internal/pilot"
	"fairway/internal/server/folder"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/test/files"
)

// overwritten is a job that waits while its input is written to in place, as `rsync --inplace -t`
// does where size and time are the same.
const overwritten = `
workflow: overwritten
inputs:
  files: {files: "in/{name}", as: "raw/{name}"}
steps:
  wait: {writes: waited, command: sh BEFORE && echo > waited}
  read: {reads: [raw/a, waited], writes: got, command: head -c 5 raw/a > got}
`

// overwrite writes to the beginning of a file, and restores its time of modification.
func overwrite(path, text string) string {
	return fmt.Sprintf("touch -r %[1]s %[1]s.time; printf '%[2]s' | dd of=%[1]s conv=notrunc status=none; "+
		"touch -r %[1]s.time %[1]s; rm %[1]s.time", path, text)
}

// pilotsWithCache are real ones that are started as a person's own are.
func pilotsWithCache(t *testing.T, cache pilot.CacheConfig) func(string, folder.Layout) (batch.System, error) {
	t.Helper()
	return func(address string, folders folder.Layout) (batch.System, error) {
		return batch.NewLocal(batch.LocalConfig{
			LogDir: folders.Pilots, Command: []string{os.Args[0]},
			Environment: func(launch string) ([]string, error) {
				cfg := pilot.Config{
					Server: address, Launch: launch, Site: LocalSite, MilliCPUs: 1000,
					SandboxDir: folders.Sandbox, LogDir: folders.Logs, Storage: folder.StoragePrefix,
					Element: folders.Storage, Workflow: folders.Workflow, Cache: cache,
				}
				cfg.Cache.Dir = folders.Cache
				encoded, err := cfg.Encode()
				return []string{pilot.ConfigVariable + "=" + encoded}, err
			},
		})
	}
}

// What a job reads is what its result is known by, however quietly a file was written to while the job
// waited, and whatever a cache has of it: others of the group get the results.
func TestInputsWrittenToInPlaceGiveNoResult(t *testing.T) {
	for name, cache := range map[string]pilot.CacheConfig{
		"linked": {Mode: pilot.CachePilot, MaxSpace: 1 << 30, Spared: true},
		"cached": {Mode: pilot.CachePilot, MaxSpace: 1 << 30},
		"full":   {Mode: pilot.CachePilot, MaxSpace: 1},
		"none":   {},
	} {
		for size, rest := range map[string]string{"small": "", "large": strings.Repeat("x", 5<<20)} {
			t.Run(name+"/"+size, func(t *testing.T) {
				t.Parallel()
				testOverwritten(t, cache, "right"+rest, "a", overwritten)
			})
		}
	}
	for _, access := range []string{"stream", "copy"} {
		t.Run(access, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(overwritten, `{name}"}`, fmt.Sprintf(`{name}", access: %s}`, access), 1)
			testOverwritten(t, pilot.CacheConfig{}, "right", "a", text)
		})
	}
	t.Run("folder", func(t *testing.T) {
		t.Parallel()
		text := strings.NewReplacer("{name}", "{name}/", "[raw/a,", "[raw/a/,", "5 raw/a", "5 raw/a/b").Replace(overwritten)
		testOverwritten(t, pilot.CacheConfig{}, "right", "a/b", text)
	})
}

func testOverwritten(t *testing.T, cache pilot.CacheConfig, text, name, workflow string) {
	inputs := files.Folder(t, map[string]string{"in/" + name: text})
	path := filepath.Join(inputs, "in", name)
	p := startServiceAs(t, t.TempDir(), nil, func(c *Config) {
		c.System = pilotsWithCache(t, cache)
		c.Site = taskqueue.Site{MaxPilots: 1, Pilot: taskqueue.Resources{MilliCPUs: 1000}}
	})
	defer p.stop()
	before := filepath.Join(inputs, "before.sh")
	files.Write(t, before, overwrite(path, "false"))
	run := func() (ended *wire.ProgressReport, got string) {
		n := p.submit(strings.ReplaceAll(workflow, "BEFORE", before), inputs, nil)
		if ended = p.await(n); !ended.GetSucceeded() { // it stays until somebody removes it
			if _, err := p.server.RemoveRun(t.Context(), taskqueue.RunID(n), false); err != nil {
				t.Fatal(err)
			}
			return ended, ""
		}
		p.retired(taskqueue.RunID(n))
		b, _ := os.ReadFile(filepath.Join(p.server.folders.Results, fmt.Sprint(n), "got"))
		return ended, string(b)
	}
	if ended, got := run(); ended.GetSucceeded() && got != "right" {
		t.Errorf("a job read %q where its input was another", got)
	}
	files.Write(t, before, "")
	for _, now := range []string{"right", "wrong", "third", "right"} {
		overwriteNow(t, path, now)
		if ended, got := run(); !ended.GetSucceeded() || got != now {
			t.Errorf("where its input is %q a job read %q: %v", now, got, ended)
		}
	}
}

// A server that does not say when a file was written says nothing of what it holds: each run reads the
// file itself.
func TestFilesOfUnknownTimeGiveNoResultToOtherRuns(t *testing.T) {
	var holds atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(holds.Load().(string)))
	}))
	defer server.Close()
	p := startServiceAs(t, t.TempDir(), nil, func(c *Config) {
		c.System = pilotsWithCache(t, pilot.CacheConfig{Mode: pilot.CachePilot, MaxSpace: 1 << 30})
		c.Site = taskqueue.Site{MaxPilots: 1, Pilot: taskqueue.Resources{MilliCPUs: 1000}}
	})
	defer p.stop()
	text := fmt.Sprintf(`
workflow: unknown
inputs:
  file: {files: "%s/a", as: raw}
steps:
  read: {reads: raw, writes: got, command: cat raw > got}
`, server.URL)
	for _, now := range []string{"right", "wrong"} {
		holds.Store(now)
		n := p.submit(text, t.TempDir(), nil)
		ended := p.await(n)
		p.retired(taskqueue.RunID(n))
		got, _ := os.ReadFile(filepath.Join(p.server.folders.Results, fmt.Sprint(n), "got"))
		if string(got) != now {
			t.Errorf("where its input is %q a job read %q: %v", now, got, ended)
		}
	}
}

func overwriteNow(t *testing.T, path, text string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err = f.WriteAt([]byte(text), 0); err == nil {
		err = os.Chtimes(path, info.ModTime(), info.ModTime())
	}
	if err != nil {
		t.Fatal(err)
	}
}
