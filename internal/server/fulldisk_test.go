package server

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"fairway/internal/pilot"
	"fairway/lib/seed"
	"fairway/test/files"
)

// greedy are jobs that each read all that others have made, twice, and look meanwhile
// whether the pilots of a host hold more than they may together.
const greedy = `
workflow: greedy
inputs:
  texts: {files: "in/{name}.txt", as: "in/{name}.txt"}
steps:
  make:
    each: "in/{name}.txt"
    writes: "made/{name}.dat"
    command: cat "$in" "$in" > "$out"
  use:
    each: "in/{name}.txt"
    reads: [READS]
    writes: "out/{name}.txt"
    command: |
      cat made/* > first || echo "$name: an input is gone" >> NOTES
      for cache in NODES/*/cache; do
        pilots=$(find "$cache" -mindepth 1 -maxdepth 1 -type d | wc -l)
        find "$cache" -mindepth 2 -type f -printf '%i %s\n' | sort -u |
          awk -v of="$cache" -v most=$((pilots * LIMIT)) '{ all += $2 } END { if (all > most) print of " holds " all " of " most }' >> NOTES
      done
      cat made/* | cmp - first || echo "$name: an input has changed" >> NOTES
      cksum < first > "$out"
`

// Pilots read from each other's caches, one of which has a disk that is too small, and one of
// them is killed at a place drawn from a seed: in the middle of adding or of dropping a
// file, or of handing it on. No job reads a wrong byte, no cache holds more than it may, and
// no input goes while a job reads it.
func TestSharedCachesOnAFullDiskWithKilledPilots(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a tmpfs needs root")
	}
	const limit, hosts = 1_500_000, 3
	rounds := 1
	if os.Getenv("FAIRWAY_SOAK") != "" {
		rounds = 30
	}
	random := rand.New(rand.NewPCG(seed.Of(t), 0))
	points := []string{
		"cache.add.reserved", "cache.add.written", "cache.add.named", "cache.drop.before", "cache.drop.after",
		"pilot.stagein.after", "pilot.stageout.before", "storage.get.written",
	}
	for range rounds {
		point := fmt.Sprintf("%s:%d", points[random.IntN(len(points))], 1+random.IntN(4))
		t.Run(point, func(t *testing.T) {
			nodes, own := t.TempDir(), t.TempDir()
			for i := range hosts {
				disk := filepath.Join(nodes, fmt.Sprint("host", i))
				if err := os.Mkdir(disk, 0o755); err != nil {
					t.Fatal(err)
				}
				size := "size=8m"
				if i == 0 {
					size = "size=1m" // less than the cache may hold
				}
				if err := syscall.Mount("fairway-test", disk, "tmpfs", 0, size); err != nil {
					t.Skip("no tmpfs here:", err)
				}
				t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
			}
			var launched atomic.Int64
			texts, reads, want := map[string]string{}, []string{}, ""
			for i := range 8 {
				text := make([]byte, 60_000+random.IntN(100_000))
				for k := range text {
					text[k] = byte(random.Uint32())
				}
				texts[fmt.Sprintf("in/%d.txt", i)] = string(text)
				reads = append(reads, fmt.Sprintf("made/%d.dat", i))
				want += string(text) + string(text)
			}
			notes, killed := filepath.Join(own, "notes"), filepath.Join(own, "killed")
			t.Setenv("FAIRWAY_FAULT", point)
			t.Setenv("FAIRWAY_FAULT_ONCE", killed)
			words := strings.NewReplacer("READS", strings.Join(reads, ", "), "NODES", nodes, "NOTES", notes, "LIMIT",
				fmt.Sprint(limit))
			r := newRun(t, files.Folder(t, texts), words.Replace(greedy), nil)
			r.config.System, r.config.Listen = nil, "127.0.0.1:0"
			r.config.Sites = []Site{apartPilots(nodes, "", hosts, pilot.CacheGlobal, func(c *pilot.Config) {
				c.SandboxDir = filepath.Join(own, c.Host)
				c.Host = fmt.Sprint("host", launched.Add(1)%hosts)
				c.Cache.Dir, c.Cache.MaxSpace = filepath.Join(nodes, c.Host, "cache"), limit
			})}
			r.mustSucceed()
			if text, err := os.ReadFile(notes); err == nil && len(text) > 0 {
				t.Errorf("%s", text)
			}
			cksum := exec.Command("cksum")
			cksum.Stdin = strings.NewReader(want)
			sum, err := cksum.Output()
			if err != nil {
				t.Fatal(err)
			}
			for i := range reads {
				if got := r.result(fmt.Sprintf("out/%d.txt", i)); got != string(sum) {
					t.Errorf("job %d has read %q instead of %q", i, got, sum)
				}
			}
			_, err = os.Stat(killed)
			t.Logf("a pilot was killed there: %v", err == nil)
		})
	}
}
