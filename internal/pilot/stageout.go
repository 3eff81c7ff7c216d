package pilot

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"fairway/internal/archive"
	"fairway/internal/beneath"
	"fairway/internal/cache"
	"fairway/internal/disk"
	"fairway/internal/fault"
	"fairway/internal/logical"
	"fairway/internal/pilot/report"
	"fairway/internal/quantity"
	"fairway/internal/storage"
	"fairway/internal/storage/served"
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
	if err := reportsOutputs(records, found); err != nil {
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
		a.result.Usage.BytesWritten += out.GetSize()
	}
	a.noteNothing()
	return stageOutAfter.Hit()
}

// noteNothing tells of a command that ended well, has written nothing and
// complained: it may not know that it failed.
func (a *attempt) noteNothing() {
	if a.result.GetUsage().GetBytesWritten() > 0 || len(a.result.GetOutputs()) == 0 {
		return
	}
	if said := report.LastLine(report.Legible(a.slot.err.Tail())); said != "" {
		a.note("it wrote nothing into " + a.result.Outputs[0].GetLfn() + " and said: " + said)
	}
}

// store puts one output where it belongs.
func (p *pilot) store(a *attempt, w written) (*wire.WrittenFile, error) {
	f, err := a.sealed(w)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	sum, size, err := checksum(a.ctx, f.File)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err == nil {
		p.proven.add(info, sum)
	}
	out := &wire.WrittenFile{Lfn: w.lfn, Version: w.promise.GetVersion(), Size: size, Adler32: sum}
	item := cache.Item{Ref: cache.Ref{LFN: w.lfn, Version: out.Version, Tag: a.GetAttempt()}, Size: size}
	path := disk.Descriptor(f.File)
	cached := p.cacheOutput(a, item, path)
	if w.promise.GetCacheOnly() && cached {
		return out, nil
	}
	out.Pfn = storage.OutputPFN(p.cfg.Storage, w.lfn, out.Version, a.GetAttempt())
	promised := storage.OutputPFN(p.cfg.Storage, w.promise.GetLfn(), out.Version, a.GetAttempt())
	return out, p.storage.Put(served.WithTicket(a.ctx, promised, w.promise.GetTicket()), path, out.Pfn)
}

// cacheOutput puts an output into the cache, if there is room.
func (p *pilot) cacheOutput(a *attempt, item cache.Item, path string) bool {
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
	info, err := a.slot.dir.Lstat(path)
	if isMissing(err) && o.GetLfn() == a.GetPayload().GetLog() && a.makeLog(path) == nil {
		return written{o, o.GetLfn(), path}, nil
	}
	switch {
	case isMissing(err), errors.Is(err, syscall.ENOTDIR):
		return written{}, &missingOutput{o.GetLfn(), "is not there"}
	case err != nil:
		return written{}, unusable(o.GetLfn(), err)
	case logical.IsFolder(o.GetLfn()) && info.IsDir():
	case logical.IsFolder(o.GetLfn()):
		return written{}, &missingOutput{o.GetLfn(), fmt.Sprintf("is %s; a name that ends in / stands for a folder, which the command has to make", beneath.KindOf(info.Mode()))}
	case info.IsDir():
		return written{}, &missingOutput{o.GetLfn(), "is a folder; end the name in / to keep the folder with all that is in it"}
	case !info.Mode().IsRegular():
		// What it is instead, the attempt to open it says.
		_, err := a.slot.dir.Open(path)
		return written{}, unusable(o.GetLfn(), err)
	}
	return written{o, o.GetLfn(), path}, nil
}

// unusable turns the error of opening an output into one that says what the
// command has left in its place.
func unusable(lfn string, err error) error {
	var content *archive.ContentError
	if errors.As(err, &content) {
		return &missingOutput{lfn, "cannot be kept: " + content.Error()}
	}
	var kind *beneath.KindError
	if errors.As(err, &kind) && logical.IsFolder(lfn) {
		return &missingOutput{lfn, fmt.Sprintf("is not a folder in the sandbox: %v", kind)}
	}
	if errors.As(err, &kind) {
		return &missingOutput{lfn, fmt.Sprintf("is not a regular file in the sandbox: %v", kind)}
	}
	if errors.Is(err, fs.ErrPermission) {
		return &missingOutput{lfn, "cannot be read: " + err.Error()}
	}
	return err
}

// maxReport bounds the file of ReportVariable, in bytes.
const maxReport = 16 << 20

// readReport reads lines "records PATH N".
func (i *info) readReport() (map[string]int64, error) {
	if i.dir == nil || i.report.untouched() {
		return nil, nil
	}
	f, err := i.dir.Open(i.report.name)
	if isMissing(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxReport+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxReport { // a part of a number would be another one
		return nil, fmt.Errorf("it is longer than %d bytes", maxReport)
	}
	return parseReport(data)
}

// parseReport reads lines "records PATH N". A last line without its end counts.
func parseReport(data []byte) (map[string]int64, error) {
	records := map[string]int64{}
	at := 0
	for line := range strings.Lines(string(data)) {
		at++
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		path, n, err := parseReported(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		if before, again := records[path]; again && before != n {
			return nil, fmt.Errorf("line %d: %s has %d records, and %d before", at, path, n, before)
		}
		records[path] = n
	}
	return records, nil
}

func parseReported(line string) (path string, n int64, err error) {
	rest, ok := strings.CutPrefix(line, "records ")
	space := strings.LastIndexByte(rest, ' ')
	if !ok || space < 0 {
		return "", 0, fmt.Errorf("%q is not of the form records PATH N", line)
	}
	n, err = quantity.Whole(rest[space+1:])
	return filepath.Clean(strings.TrimSpace(rest[:space])), n, err
}

// reportsOutputs refuses a report on a file that is no output: it was meant for
// another.
func reportsOutputs(records map[string]int64, found []written) error {
	if len(records) == 0 {
		return nil
	}
	outputs := make(map[string]bool, len(found))
	for _, w := range found {
		outputs[w.path] = true
	}
	for path := range records {
		if !outputs[path] {
			return fmt.Errorf("%s is none of the outputs", path)
		}
	}
	return nil
}
