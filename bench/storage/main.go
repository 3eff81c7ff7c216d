// Command storage measures what it takes to read and write files on storage elements,
// each against the program that people use there.
//
//	go run ./bench/storage -json
//
// The servers are real ones on this machine: nginx with WebDAV, XRootD, versitygw.
// Each operation is a process of its own, which starts, moves the files, compares
// checksums where the server tells them, and ends; so is each peer. All take turns, and
// there is a row for each peer that is installed: the aim is about the fastest of them.
// Each begins when what was written before is on disk: else it would wait for that, too.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"fairway/bench/measure"
	"fairway/internal/storage"
	"fairway/internal/storage/elements"
	"fairway/internal/storage/storagetest"
	"fairway/lib/sched"
	"fairway/lib/subprocess"
)

// row is one line of the result.
type row struct {
	Element   string  `json:"element"`
	Operation string  `json:"operation"`
	Seconds   float64 `json:"seconds"` // median of the rounds
	Peer      string  `json:"peer"`    // empty: none is installed
	PeerTime  float64 `json:"peer_seconds"`
	Ratio     float64 `json:"ratio"`     // median of the ratios in each round
	CPURatio  float64 `json:"cpu_ratio"` // likewise, of processor time, without that of the server
	Peak      float64 `json:"peak_mib"`  // resident memory of this program, at most
}

// testedFolder is a folder of an element, with the programs that people use there.
type testedFolder struct {
	name, pfn string
	peers     []peer
}

// peer is a program with its calls: one file in, out; a folder of files in, out.
type peer struct {
	name, program                  string
	read, write, readAll, writeAll func(from, to string, names []string) []string
}

func main() {
	asJSON := flag.Bool("json", false, "print one JSON object")
	size := flag.Int64("size", 1<<30, "bytes of the large file")
	count := flag.Int("files", 1000, "number of small files, of 64 KiB each")
	rounds := flag.Int("rounds", 3, "rounds of each operation")
	only := flag.String("only", "", "measure only this element: file, webdav, xrootd, s3")
	folder := flag.String("folder", "", "where files are; default: a folder in the one for temporary files")
	move := flag.String("move", "", "internal: get or put the files that are named, FROM TO")
	flag.Parse()
	if *move != "" {
		measure.ExitOn(moveFiles(*move, flag.Args()))
		return
	}
	h := measure.NewHost("storage", *folder)
	defer h.End()
	rows, err := measureAll(h, *size, *count, *rounds, *only)
	if err != nil {
		h.Fatal(err)
	}
	measure.ExitOn(measure.Print(rows, *asJSON, func(r row) string {
		return fmt.Sprintf("%-8s %-12s %7.2f s  %-12s %7.2f s  ratio %5.2f  cpu %5.2f  %4.0f MiB", r.Element, r.Operation,
			r.Seconds, r.Peer, r.PeerTime, r.Ratio, r.CPURatio, r.Peak)
	}))
}

// moveFiles is what is measured: files that come and go as those of jobs do.
func moveFiles(way string, pairs []string) error {
	if len(pairs) == 1 { // a folder of pairs, in a file
		text, err := os.ReadFile(pairs[0])
		if err != nil {
			return err
		}
		pairs = strings.Fields(string(text))
	}
	e := elements.New(storage.Roots{}, sched.Default().Sleep)
	group, ctx := errgroup.WithContext(context.Background())
	next := make(chan [2]string, len(pairs)/2)
	for ; len(pairs) > 1; pairs = pairs[2:] {
		next <- [2]string(pairs)
	}
	close(next)
	for range storage.DefaultTransfers {
		group.Go(func() (err error) {
			for file := range next {
				if way == "put" {
					err = e.Put(ctx, file[0], file[1])
				} else {
					_, err = e.Get(ctx, file[0], file[1])
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	text, err := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		if kib, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Print(kib)
		}
	}
	return err
}

func measureAll(h *measure.Host, size int64, count, rounds int, only string) (rows []row, err error) {
	local := h.TempDir()
	large := filepath.Join(local, "large")
	if err := write(large, size); err != nil {
		return nil, err
	}
	small := filepath.Join(local, "small")
	if err := os.Mkdir(small, 0o755); err != nil {
		return nil, err
	}
	names := make([]string, count)
	for i := range names {
		names[i] = fmt.Sprintf("f%05d", i)
		if err := write(filepath.Join(small, names[i]), 64<<10); err != nil {
			return nil, err
		}
	}
	for _, start := range []struct {
		name string
		at   func(*measure.Host) (testedFolder, error)
	}{{"file", fileAt}, {"webdav", webAt}, {"xrootd", rootAt}, {"s3", s3At}} {
		if only != "" && only != start.name {
			continue
		}
		p, err := start.at(h)
		if err != nil {
			return nil, err
		}
		p.name = start.name
		m := &measuring{Host: h, testedFolder: p, rounds: rounds}
		for _, operation := range []struct {
			name string
			run  func() ([]row, error)
		}{
			{"write", func() ([]row, error) { return m.writing(large, "", nil) }},
			{"read", func() ([]row, error) { return m.reading(large, "", nil) }},
			{"write-small", func() ([]row, error) { return m.writing("", small, names) }},
			{"read-small", func() ([]row, error) { return m.reading("", small, names) }},
		} {
			against, err := operation.run()
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", p.name, operation.name, err)
			}
			for _, r := range against {
				r.Element, r.Operation = p.name, operation.name
				rows = append(rows, r)
			}
		}
	}
	return rows, nil
}

// write makes a file that no compression shortens.
func write(path string, size int64) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	piece := []byte(storagetest.Contents(int(min(size, 16<<20))))
	for left := size; left > 0 && err == nil; left -= int64(len(piece)) {
		_, err = out.Write(piece[:min(int64(len(piece)), left)])
	}
	return errors.Join(err, out.Close())
}

// measuring runs the operations at one place.
type measuring struct {
	*measure.Host
	testedFolder
	rounds int
	used   int // names that were used
	last   string
}

// writing puts one file, or a folder of them, under names that were not used.
func (m *measuring) writing(large, small string, names []string) ([]row, error) {
	return m.alternate(func(by *peer) (*exec.Cmd, func(), error) {
		m.used++
		to := fmt.Sprintf("%s/%d", m.pfn, m.used)
		switch {
		case by == nil && large != "":
			m.discard(m.last)
			m.last = to
			return m.self("put", large, to+"/large")
		case by == nil:
			m.last = to
			return m.self("put", pairs(small, to, names)...)
		case large != "":
			c, _, err := command(by.write(large, to+"/large", nil))
			return c, func() { m.discard(to) }, err
		}
		return command(by.writeAll(small, to, names))
	})
}

// discard removes what nobody reads from a folder, which may be in memory.
func (m *measuring) discard(at string) {
	if filepath.IsAbs(at) {
		_ = os.RemoveAll(at)
	}
}

// reading gets what was written last.
func (m *measuring) reading(large, small string, names []string) ([]row, error) {
	from := m.last
	return m.alternate(func(by *peer) (*exec.Cmd, func(), error) {
		to := m.TempDir()
		var c *exec.Cmd
		var err error
		done := func() {}
		switch {
		case by == nil && large != "":
			c, done, err = m.self("get", from+"/large", to+"/large")
		case by == nil:
			c, done, err = m.self("get", pairs(from, to, names)...)
		case large != "":
			c, done, err = command(by.read(from+"/large", to+"/large", nil))
		default:
			c, done, err = command(by.readAll(from, to, names))
		}
		return c, func() {
			done()
			if large != "" { // small ones stay: ext4 is slow to make files where many were just removed
				_ = os.RemoveAll(to)
			}
		}, err
	})
}

func pairs(from, to string, names []string) (all []string) {
	for _, name := range names {
		all = append(all, from+"/"+name, to+"/"+name)
	}
	return all
}

// self is this program, to move files: pairs of from and to.
func (m *measuring) self(way string, files ...string) (*exec.Cmd, func(), error) {
	if len(files) <= 2 {
		return subprocess.Self(append([]string{"-move", way}, files...)...), func() {}, nil
	}
	list := filepath.Join(m.TempDir(), "list")
	err := os.WriteFile(list, []byte(strings.Join(files, "\n")), 0o666)
	return subprocess.Self("-move", way, list), func() { _ = os.RemoveAll(filepath.Dir(list)) }, err
}

func command(words []string) (*exec.Cmd, func(), error) {
	if words == nil {
		return nil, nil, nil
	}
	return exec.Command(words[0], words[1:]...), func() {}, nil
}

// alternate lets this program and each peer that is installed take turns. There is a row
// for each of these peers, or one without.
func (m *measuring) alternate(next func(by *peer) (*exec.Cmd, func(), error)) ([]row, error) {
	var rows []row
	for _, p := range m.peers {
		if _, err := exec.LookPath(p.program); err == nil {
			r, err := m.pair(next, &p)
			if err != nil {
				return nil, err
			}
			rows = append(rows, r)
		}
	}
	if rows != nil {
		return rows, nil
	}
	alone, err := m.pair(next, nil)
	return []row{alone}, err
}

// pair runs an operation by Fairway and by a peer. Who begins changes with each round:
// what runs after a long pause pays for memory and processors that the machine has put
// to rest meanwhile.
func (m *measuring) pair(next func(by *peer) (*exec.Cmd, func(), error), other *peer) (row, error) {
	var ours, theirs []cost
	for round := range m.rounds {
		turns := []*peer{nil}
		if other != nil {
			turns = slices.Insert(turns, round%2, other)
		}
		for _, by := range turns {
			spent, err := run(next(by))
			switch {
			case err != nil:
				return row{}, err
			case by == nil:
				ours = append(ours, spent)
			default:
				theirs = append(theirs, spent)
			}
		}
	}
	seconds := func(c cost) float64 { return c.seconds }
	r := row{Seconds: median(ours, seconds)}
	for _, one := range ours {
		r.Peak = max(r.Peak, one.peak)
	}
	if other != nil {
		r.Peer, r.PeerTime, r.Ratio = other.name, median(theirs, seconds), ratio(ours, theirs, seconds)
		r.CPURatio = ratio(ours, theirs, func(c cost) float64 { return c.processor })
	}
	return r, nil
}

// cost is what an operation took.
type cost struct {
	seconds   float64
	processor float64 // seconds
	peak      float64 // MiB of memory
}

func median(costs []cost, of func(cost) float64) float64 {
	list := make([]float64, len(costs))
	for i, c := range costs {
		list[i] = of(c)
	}
	return measure.Median(list)
}

// ratio is the median of the ratios in each round.
func ratio(ours, theirs []cost, of func(cost) float64) float64 {
	ratios := make([]float64, len(theirs))
	for i := range theirs {
		ratios[i] = of(ours[i]) / of(theirs[i])
	}
	return measure.Median(ratios)
}

// run runs a command when nothing waits for the disk any more.
func run(c *exec.Cmd, done func(), err error) (cost, error) {
	if err != nil {
		return cost{}, err
	}
	defer done()
	unix.Sync()
	began := time.Now()
	out, err := c.CombinedOutput()
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w: %.500s", c.Path, err, out)
	}
	spent := cost{
		seconds: time.Since(began).Seconds(), processor: (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds(),
	}
	if kib, err := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(string(out)), " kB"), 64); err == nil {
		spent.peak = kib / 1024 // not that of wait4, which counts what this process had before it was replaced
	}
	return spent, nil
}
