package server

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"fairway/internal/batch"
	"fairway/internal/pilot"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
	"fairway/lib/seed"
	"fairway/test/files"
)

// apartPilots are pilots that share nothing with their server nor with each other, as
// on hosts of their own, but for what they send each other. They store at a place; an empty
// one is the folder of the state.
func apartPilots(nodes, place string, most int, mode pilot.CacheMode, change func(*pilot.Config)) Site {
	return Site{
		Site: taskqueue.Site{Name: "cluster", MaxPilots: most, MinPilots: most, Pilot: taskqueue.Resources{MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 30}},
		System: func(folders folder.Layout, way func(string, any) (launch.Way, error)) (batch.System, error) {
			return batch.NewLocal(batch.LocalConfig{
				State: folders.ID, LogDir: folders.Pilots, Command: []string{os.Args[0]},
				Environment: func(name string) ([]string, error) {
					c := pilot.Config{
						Host: name, MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 30,
						SandboxDir: filepath.Join(nodes, name, "sandbox"), LogDir: "/proc/no/logs",
						Storage: folders.StorageAt(place), Element: "/no/such/state", Workflow: "/no/such/folder",
						Cache: pilot.CacheConfig{Mode: mode, Dir: filepath.Join(nodes, name, "cache"), MaxSpace: 1 << 30},
					}
					if change != nil {
						change(&c)
					}
					at, err := way(name, c)
					return []string{connectVariable + "=" + at.File}, err
				},
			})
		},
	}
}

// togetherStep has four jobs read one file at the same time, each at a pilot of its own,
// and prove that it is the right one.
const togetherStep = `
workflow: together
inputs:
  big: {files: big.dat}
  names: {files: "in/{name}.txt", as: "in/{name}.txt"}
steps:
  make:
    reads: big.dat
    writes: made.dat
    command: |
      cat big.dat big.dat > made.dat && chmod +x made.dat
      for pilot in /proc/[0-9]*; do
        tr '\0' '\n' 2>/dev/null < "$pilot/environ" | grep -qs '^CONNECT=FOLDER/' || continue
        ls -l "$pilot/fd" 2>/dev/null | sed -n 's/.*socket:\[\([0-9]*\)\]$/\1/p'
      done > sockets
      awk 'NR == FNR { of[$1]; next } $4 == "0A" && $10 in of { n++ } END { print n + 0 }' sockets /proc/net/tcp /proc/net/tcp6 > TOGETHER/../listening || true
  use:
    each: "in/{name}.txt"
    reads: [big.dat, made.dat]
    writes: "out/{name}.txt"
    command: |
      touch "TOGETHER/$name"
      while [ "$(ls TOGETHER | wc -l)" -lt 4 ]; do sleep 0.01; done
      [ -x made.dat ]
      cat big.dat made.dat | cksum > "$out"
`

// Four hosts without any common folder need one file from outside and one that a job
// has made. The storage element is read once for each, and everybody has the right
// bytes. Where caches are not shared pilots listen nowhere.
func TestPilotsOfASiteShareTheirCaches(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(seed.Of(t), 0))
	text := make([]byte, 3<<20)
	for i := range text {
		text[i] = byte(random.Uint32())
	}
	summed := map[string]bool{}
	for mode, most := range map[pilot.CacheMode]int64{pilot.CacheGlobal: 1, pilot.CachePilot: 4} {
		root, together := files.Folder(t, map[string]string{
			"in/a.txt": "a", "in/b.txt": "b", "in/c.txt": "c", "in/d.txt": "d", "big.dat": string(text),
		}), t.TempDir()
		if err := os.Mkdir(together+"/jobs", 0o755); err != nil {
			t.Fatal(err)
		}
		r := newRun(t, root, strings.NewReplacer("TOGETHER", together+"/jobs", "CONNECT", connectVariable, "FOLDER",
			root).Replace(togetherStep), nil)
		r.config.System, r.config.Listen = nil, "127.0.0.1:0"
		r.config.Sites = []Site{apartPilots(t.TempDir(), "", 4, mode, nil)}
		s, err := Open(context.Background(), r.config)
		if err != nil {
			t.Fatal(err)
		}
		outcome, err := s.Run(context.Background())
		if err != nil || !outcome.Succeeded {
			t.Fatalf("%+v %v", outcome, err)
		}
		if n := files.Read(t, together+"/listening"); (n != "0\n") != (mode == pilot.CacheGlobal) {
			t.Errorf("cache %s: pilots listen at %s ports", mode, strings.TrimSpace(n))
		}
		for _, name := range []string{"a", "b", "c", "d"} {
			summed[r.result("out/"+name+".txt")] = true
		}
		// big.dat to the pilot of make, made.dat from there; small files come besides.
		staged := s.runs.own.room.Tally.Summary(&s.runs.own.room.Cores).GetBytesStaged() / int64(len(text))
		if want := most; mode == pilot.CacheGlobal && staged != want || mode == pilot.CachePilot && staged < want {
			t.Errorf("cache %s: storage was read for %d times the file", mode, staged)
		}
		sum, all := cachesAfter(t, root), s.runs.own.room.Tally.Summary(&s.runs.own.room.Cores)
		if sum.Hits != all.GetCacheHits() || sum.HitBytes != all.GetBytesCached() || sum.Misses != all.GetCacheMisses() ||
			sum.MissBytes != all.GetBytesStaged() {
			t.Errorf("the hosts have %+v, and the run %+v", sum, all)
		}
		if ahead := sum.PrefetchHits; mode == pilot.CacheGlobal && sum.RemoteHits+ahead < 6 ||
			mode == pilot.CachePilot && sum.RemoteHits > 0 {
			t.Errorf("cache %s: %d files came from other hosts, and %d were prefetched", mode, sum.RemoteHits, ahead)
		}
	}
	if len(summed) != 1 {
		t.Error("jobs have read different bytes:", summed)
	}
}

// cachesAfter are the counts of all hosts of a run that has ended.
func cachesAfter(t *testing.T, root string) *wire.NodeCache {
	t.Helper()
	c, err := api.Connect(context.Background(), root)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	answer, err := c.ListCaches(context.Background(), &wire.ListCachesRequest{})
	if err != nil || answer.GetLive() {
		t.Fatal(answer, err)
	}
	sum := new(wire.NodeCache)
	for _, n := range answer.GetNodes() {
		sum.Hits += n.GetHits()
		sum.HitBytes += n.GetHitBytes()
		sum.Misses += n.GetMisses()
		sum.MissBytes += n.GetMissBytes()
		sum.RemoteHits += n.GetRemoteHits()
		sum.PrefetchHits += n.GetPrefetchHits()
		sum.EvictedFiles += n.GetEvictedFiles()
		sum.EvictedBytes += n.GetEvictedBytes()
	}
	return sum
}

// vandals are jobs that each read all that others have made, and then damage a file in
// the cache of some host. Those of even numbers forge it: it keeps its adler32.
const vandals = `
workflow: vandals
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
      cat made/* | cksum > "$out"
      of=$(ls NODES/*/cache/*/* 2>/dev/null | awk -v seed="SEED$name" 'BEGIN { srand(length(seed) + seed) } { all[NR] = $0 } END { print all[1 + int(rand() * NR)] }')
      size=$(stat -c %s "$of" || echo 0)
      head -c "$size" /dev/zero > "NODES/$name"
      set -- $(od -An -tu1 -j 1000 -N 3 "$of" || true)
      if [ "$((name % 2))" = 0 ] && [ "$#" = 3 ] && [ "$1" -lt 255 ] && [ "$2" -gt 1 ] && [ "$3" -lt 255 ]; then
        cat "$of" > "NODES/$name"
        printf "$(printf '\\%03o' "$(($1 + 1))" "$(($2 - 2))" "$(($3 + 1))")" | dd of="NODES/$name" bs=1 seek=1000 conv=notrunc 2>/dev/null
        chmod 444 "NODES/$name" && echo "$of" >> NODES/forged
      fi
      mv "NODES/$name" "$of" && echo "$of" >> NODES/damaged || true
`

// Caches that hold less than the jobs read, and that lose and damage files all the time,
// give no job a wrong byte.
func TestDamagedCachesOfOtherHosts(t *testing.T) {
	t.Parallel()
	number := seed.Of(t)
	random := rand.New(rand.NewPCG(number, 0))
	texts, reads, nodes := map[string]string{}, []string{}, t.TempDir()
	for _, name := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		text := make([]byte, 100_000+random.IntN(100_000))
		for i := range text {
			text[i] = byte(random.Uint32())
		}
		texts["in/"+name+".txt"] = string(text)
		reads = append(reads, "made/"+name+".dat")
	}
	root := files.Folder(t, texts)
	words := strings.NewReplacer("READS", strings.Join(reads, ", "), "NODES", nodes, "SEED", fmt.Sprint(number%1000))
	r := newRun(t, root, words.Replace(vandals), nil)
	r.config.System, r.config.Listen = nil, "127.0.0.1:0"
	r.config.Sites = []Site{
		apartPilots(nodes, "", 3, pilot.CacheGlobal, func(c *pilot.Config) { c.Cache.MaxSpace = 1_500_000 }),
	}
	r.mustSucceed()
	if damaged := files.Read(t, filepath.Join(nodes, "damaged")); strings.Count(damaged, "\n") < len(reads)/2 {
		t.Error("few files were damaged:", damaged)
	}
	if forged := files.Read(t, filepath.Join(nodes, "forged")); forged == "" {
		t.Error("no file was forged")
	}
	if sum := cachesAfter(t, root); sum.EvictedFiles == 0 || sum.EvictedBytes < sum.EvictedFiles {
		t.Errorf("caches that hold less than is read have evicted %d files of %d bytes", sum.EvictedFiles, sum.EvictedBytes)
	}
	results := map[string]bool{}
	for i := range reads {
		results[r.result(fmt.Sprintf("out/%d.txt", i+1))] = true
	}
	want := ""
	for i := range reads {
		want += texts[fmt.Sprintf("in/%d.txt", i+1)] + texts[fmt.Sprintf("in/%d.txt", i+1)]
	}
	cksum := exec.Command("cksum")
	cksum.Stdin = strings.NewReader(want)
	sum, err := cksum.Output()
	if err != nil || len(results) != 1 || !results[string(sum)] {
		t.Errorf("jobs have read %v instead of %q, %v", results, sum, err)
	}
}
