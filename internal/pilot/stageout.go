package pilot

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/adler32"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"fairway/internal/cache"
	"fairway/internal/fault"
	"fairway/internal/wire"
)

var (
	stageOutBefore = fault.New("pilot.stageout.before")
	stageOutAfter  = fault.New("pilot.stageout.after")
)

// missingOutput says that a command has not written what was promised.
type missingOutput struct{ lfn, why string }

func (e *missingOutput) Error() string {
	return fmt.Sprintf("the command ended well but its output %s %s", e.lfn, e.why)
}

// written is an output in the sandbox.
type written struct {
	promise *wire.OutputFile
	lfn     string
	path    string // relative to the sandbox
	size    int64
}

// stageOut stores the outputs of an attempt and puts them into the cache.
func (p *pilot) stageOut(a *attempt) error {
	if len(a.GetOutputs()) == 0 {
		return nil
	}
	found, err := findOutputs(a)
	if err != nil {
		return err
	}
	if err := stageOutBefore.Hit(); err != nil {
		return err
	}
	records, err := a.slot.info.readReport()
	if err != nil {
		return fmt.Errorf("$%s: %w", ReportVariable, err)
	}
	for _, w := range found {
		out, err := p.store(a, w)
		if err != nil {
			p.forget(a, found)
			return fmt.Errorf("output %s: %w", w.lfn, err)
		}
		out.Records = records[w.path]
		a.result.Outputs = append(a.result.Outputs, out)
		a.result.Usage.BytesWritten += w.size
	}
	return stageOutAfter.Hit()
}

// store puts one output where it belongs.
func (p *pilot) store(a *attempt, w written) (*wire.WrittenFile, error) {
	path := filepath.Join(a.slot.folder, w.path)
	sum, err := seal(path)
	if err != nil {
		return nil, err
	}
	out := &wire.WrittenFile{Lfn: w.lfn, Version: w.promise.GetVersion(), Size: w.size, Adler32: sum}
	item := cache.Item{Ref: cache.Ref{LFN: w.lfn, Version: out.Version, Tag: a.GetAttempt()}, Size: w.size}
	cached := p.keep(a, item, path)
	if w.promise.GetCacheOnly() && cached {
		return out, nil
	}
	out.Pfn = pfnOf(p.cfg.Storage, w.lfn, out.Version, a.GetAttempt())
	return out, p.storage.Put(a.ctx, path, out.Pfn)
}

// keep puts an output into the cache, if there is room.
func (p *pilot) keep(a *attempt, item cache.Item, path string) bool {
	if p.caching.cache == nil {
		return false
	}
	err := p.caching.cache.Add(a.ctx, item, path)
	if err != nil {
		p.log.Info("output not kept in the cache", "lfn", item.LFN, "reason", err)
	}
	return err == nil
}

// forget takes outputs out of the cache that will not be committed.
func (p *pilot) forget(a *attempt, outputs []written) {
	if p.caching.cache == nil {
		return
	}
	for _, w := range outputs {
		p.caching.cache.Drop(cache.Ref{LFN: w.lfn, Version: w.promise.GetVersion(), Tag: a.GetAttempt()})
	}
}

// seal takes the right to write off a file, since links to it are made, and
// returns its checksum.
func seal(path string) (uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	sum := adler32.New()
	if _, err := io.Copy(sum, f); err != nil {
		return 0, err
	}
	return sum.Sum32(), f.Chmod(info.Mode().Perm() &^ 0o222)
}

// findOutputs finds what was promised, and the files of patterns in the order
// of their names. A file belongs to the first promise that it matches.
func findOutputs(a *attempt) (found []written, err error) {
	taken := map[string]bool{}
	for _, i := range a.in.files {
		taken[i.path] = true
	}
	for _, o := range a.GetOutputs() {
		if o.GetPattern() {
			continue
		}
		w, err := findOutput(a, o)
		if err != nil {
			return nil, err
		}
		taken[w.path] = true
		found = append(found, w)
	}
	for _, o := range a.GetOutputs() {
		if o.GetPattern() {
			matches, err := findMatches(a, o, taken)
			if err != nil {
				return nil, fmt.Errorf("output %s: %w", o.GetLfn(), err)
			}
			found = append(found, matches...)
		}
	}
	return found, nil
}

func findOutput(a *attempt, o *wire.OutputFile) (written, error) {
	path, err := a.pathOf(o.GetLfn())
	if err != nil {
		return written{}, err
	}
	info, err := os.Lstat(filepath.Join(a.slot.folder, path))
	switch {
	case isMissing(err):
		return written{}, &missingOutput{o.GetLfn(), "is not there"}
	case err != nil:
		return written{}, err
	case !info.Mode().IsRegular():
		return written{}, &missingOutput{o.GetLfn(), "is not a regular file"}
	}
	return written{o, o.GetLfn(), path, info.Size()}, nil
}

// maxReport bounds the file of ReportVariable, in bytes.
const maxReport = 1 << 20

// readReport reads lines "records PATH N".
func (i *info) readReport() (map[string]int64, error) {
	if i.report.untouched() {
		return nil, nil
	}
	f, err := os.Open(i.report.path)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxReport))
	if err != nil {
		return nil, err
	}
	return parseReport(data)
}

func parseReport(data []byte) (map[string]int64, error) {
	records := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for number := 1; lines.Scan(); number++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" {
			continue
		}
		rest, ok := strings.CutPrefix(line, "records ")
		at := strings.LastIndexByte(rest, ' ')
		if !ok || at < 0 {
			return nil, fmt.Errorf("line %d: %q is not of the form records PATH N", number, line)
		}
		n, err := strconv.ParseInt(rest[at+1:], 10, 64)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("line %d: %q is not a number of records", number, rest[at+1:])
		}
		records[filepath.Clean(strings.TrimSpace(rest[:at]))] = n
	}
	return records, errors.Join(lines.Err())
}
