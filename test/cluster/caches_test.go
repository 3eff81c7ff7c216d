package cluster

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"fairway/test/files"
	"fairway/test/netns"
)

// shared is a run on hosts whose pilots read from each other's caches.
type shared struct {
	t      *testing.T
	hosts  *hosts
	folder string
	sites  string
	names  []string
}

func newShared(t *testing.T, workflow string) *shared {
	t.Helper()
	return &shared{
		t: t, hosts: newHosts(t), folder: files.Folder(t, map[string]string{"workflow.yaml": workflow}), sites: "sites:\n",
	}
}

// site adds a site with so many hosts, which are named after it, and so many pilots on each.
func (s *shared) site(name string, number, pilots int, further ...string) (all []*netns.Host) {
	s.t.Helper()
	for i := range number {
		all = append(all, s.hosts.add(s.t, fmt.Sprint(name, i+1)))
	}
	batch := newMock(s.t, s.hosts, all, pilots, number*pilots)
	s.sites += batch.site(name, append(further, fmt.Sprint("min_pilots: ", number*pilots), "cache: global")...)
	s.names = append(s.names, "--site", name)
	return all
}

// run has the workflow run to its end, and returns its results.
func (s *shared) run() map[string]string {
	s.t.Helper()
	files.Write(s.t, filepath.Join(s.folder, "sites.yaml"), s.sites)
	login := s.hosts.add(s.t, "login")
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	words := append([]string{"env", "-C", s.folder, fairway, "run", "--listen", fmt.Sprintf("%s:%d", login.Address, port)},
		s.names...)
	command := s.hosts.command(login, words...)
	command.WaitDelay = time.Second
	stop := context.AfterFunc(ctx, func() { _ = command.Process.Kill() })
	defer stop()
	out, err := command.CombinedOutput()
	if s.t.Logf("%s", out); err != nil {
		s.t.Fatal(err)
	}
	return results(s.t, s.folder)
}

// twoSites has a file go from where it is made to one host after another.
const twoSites = `
workflow: nearest
steps:
  make: {tools: [on-near1], writes: big.dat, command: seq 1200000 > "$out"}
  across: {tools: [on-far1], reads: big.dat, writes: across.txt, publish: true, command: cksum < big.dat > "$out"}
  beyond: {tools: [on-far2], reads: [big.dat, across.txt], writes: beyond.txt, publish: true, command: cksum < big.dat > "$out"}
  beside: {tools: [on-near2], reads: [big.dat, beyond.txt], writes: beside.txt, publish: true, command: cksum < big.dat > "$out"}
  within: {tools: [on-near1], reads: [big.dat, beside.txt], writes: within.txt, publish: true, command: cksum < big.dat > "$out"}
  again: {tools: [on-far1], reads: [big.dat, within.txt], writes: again.txt, publish: true, command: cksum < big.dat > "$out"}
`

// Two sites exchange what their caches hold, over lines that differ. Each host gets a file once,
// from the nearest that has it: its own host, another one of its site, and only then the other
// site, and nobody asks storage.
func TestTheNearestCacheIsRead(t *testing.T) {
	t.Parallel()
	s := newShared(t, twoSites)
	near := s.site("near", 2, 2, "cache_with: [far]")
	far := s.site("far", 2, 1, "cache_with: [near]")
	near[0].Limit(100) // the nearest is not the fastest
	got := s.run()
	for _, name := range []string{"across.txt", "beyond.txt", "beside.txt", "within.txt", "again.txt"} {
		if sum := "2901499871 8488896\n"; got[name] != sum {
			t.Errorf("%s is %q instead of %q", name, got[name], sum)
		}
	}
	const size = 8_488_896
	for i, host := range append(near, far...) {
		want := []float64{2, 0, 1, 0}[i]
		if times := float64(host.Sent()) / size; times < want || times > want+0.5 {
			t.Errorf("%s has sent %.2f times the file instead of %.0f times", host.Name, times, want)
		}
	}
}

// walled has hosts read what only one holds, whose port nobody reaches.
const walled = `
workflow: walled
steps:
  make:
    tools: [on-host1]
    writes: [a1, a2, a3, a4, b1, b2, b3, b4, c1, c2, c3, c4, d1, d2]
    publish: true
    command: for name in $out; do seq $((0x$name)) > $name; done
  one:
    {tools: [on-host2], reads: [a1, a2, a3, a4], writes: one.txt, publish: true, command: cat $in > "$out"}
  two:
    {tools: [on-host3], reads: [b1, b2, b3, b4, one.txt], writes: two.txt, publish: true, command: 'cat b? > "$out"'}
  three:
    {tools: [on-host4], reads: [c1, c2, c3, c4, two.txt], writes: three.txt, publish: true, command: 'cat c? > "$out"'}
  four:
    {tools: [on-host2], reads: [d1, d2, three.txt], writes: four.txt, command: 'cat d? > "$out"'}
`

// A pilot whose port is behind a wall is found out once by each of two hosts, and offered to
// nobody then. All jobs have the right bytes.
func TestAPilotBehindAWallIsFoundOut(t *testing.T) {
	t.Parallel()
	walls := map[string]string{"reject": "reject with tcp reset"}
	if os.Getenv("FAIRWAY_SOAK") != "" {
		walls["drop"] = "drop" // of which a host learns after share.DialTime
	}
	for name, verdict := range walls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShared(t, walled)
			s.site("host", 4, 1)[0].Filter("table inet t {\n chain in {\n type filter hook input priority 0;\n iifname " +
				"\"eth0\" tcp flags & (syn | ack) == syn " + verdict + "\n }\n}\n")
			got := s.run()
			for name, from := range map[string]string{
				"one.txt":   "a1 a2 a3 a4",
				"two.txt":   "b1 b2 b3 b4",
				"three.txt": "c1 c2 c3 c4",
				"four.txt":  "d1 d2",
			} {
				want := ""
				for _, part := range strings.Fields(from) {
					want += got[part]
				}
				if got[name] != want || want == "" {
					t.Errorf("%s has %d bytes, and is not that of %s with %d", name, len(got[name]), from, len(want))
				}
			}
			tried := 0
			logs, _ := filepath.Glob(filepath.Join(s.folder, ".fairway/pilots/*/*.log"))
			for _, log := range logs {
				text := files.Read(t, log)
				n := strings.Count(text, "another cache was of no use")
				if tried += n; n > 1 {
					t.Errorf("a pilot has tried %d times:\n%s", n, text)
				}
			}
			if len(logs) == 0 || tried != 2 {
				t.Errorf("%d pilots have tried %d times", len(logs), tried)
			}
		})
	}
}
