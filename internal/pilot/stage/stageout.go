package stage

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/zeebo/blake3"

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
	"hash/adler32"
)

var (
	stageOutBefore = fault.New("pilot.stageout.before")
	stageOutAfter  = fault.New("pilot.stageout.after")
)

type missingOutput struct{ lfn, why string }

func (e *missingOutput) Error() string {
	return fmt.Sprintf("the command ended well but its output %s %s", e.lfn, e.why)
}

type written struct {
	promise *wire.OutputFile
	lfn     string
	path    string // relative to the sandbox
}

// StageOut stores the outputs of an attempt and puts them into the cache.
func (ar *Area) StageOut(a *Execution) error {
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
	records, err := a.Slot.info.readReport()
	if err != nil {
		return fmt.Errorf("$%s: %w", ReportVariable, err)
	}
	if err := reportsOutputs(records, found); err != nil {
		return fmt.Errorf("$%s: %w", ReportVariable, err)
	}
	if len(found) >= ManyOutputs {
		ar.count(0, len(found))
		defer func() { ar.count(-len(a.Result.Outputs), -len(found)) }()
		ar.Wake()
	}
	for _, w := range found {
		out, err := ar.store(a, w)
		if err != nil {
			ar.forget(a, found)
			return fmt.Errorf("output %s: %w", w.lfn, err)
		}
		out.Records = records[w.path]
		a.Result.Outputs = append(a.Result.Outputs, out)
		a.Result.Usage.BytesWritten += out.GetSize()
		if len(found) >= ManyOutputs {
			ar.count(1, 0)
		}
	}
	a.noteNothing()
	return stageOutAfter.Hit()
}

// put stores a file under a name that no other attempt and version has.
func (ar *Area) put(a *Execution, w written, path, prefix string, out *wire.WrittenFile) error {
	out.Pfn = storage.OutputPFN(prefix, w.lfn, out.Version, a.GetAttempt())
	promised := served.OutputPattern(prefix, w.promise.GetLfn(), w.promise.GetPattern(), out.Version, a.GetAttempt())
	if w.lfn == a.GetCheckpoint().GetLfn() {
		promised = served.CheckpointPattern(prefix, w.lfn, a.GetAttempt())
	}
	return ar.Storage.Put(served.WithPatternTicket(a.Ctx, promised, w.promise.GetTicket()), path, out.Pfn)
}

// ManyOutputs is from how many outputs on the stage-out of an attempt counts in Storing.
const ManyOutputs = 100

// Storing says how many outputs are stored and how many are to be, of the attempts that
// are just storing ManyOutputs or more, all together. Any goroutine may call it.
func (ar *Area) Storing() (stored, of int64) {
	ar.mu.Lock()
	defer ar.mu.Unlock()
	return ar.stored, ar.toStore
}

func (ar *Area) count(stored, toStore int) {
	ar.mu.Lock()
	defer ar.mu.Unlock()
	ar.stored += int64(stored)
	ar.toStore += int64(toStore)
}

// noteNothing tells of a command that ended well, has written nothing and
// complained: it may not know that it failed. A counting one writes a name only.
func (a *Execution) noteNothing() {
	outputs := a.Result.GetOutputs()
	if a.Result.GetUsage().GetBytesWritten() > 0 || len(outputs) == 0 ||
		strings.HasPrefix(outputs[0].GetLfn(), logical.CountFolder) {
		return
	}
	if said := report.LastLine(a.In.Redacted(report.Legible(a.Slot.Err.Tail()))); said != "" {
		a.Note("it wrote nothing into " + outputs[0].GetLfn() + " and said: " + said)
	}
}

func (ar *Area) store(a *Execution, w written) (*wire.WrittenFile, error) {
	f, err := a.sealed(w)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	prefix := cmp.Or(a.GetStorage(), ar.Prefix)
	out := &wire.WrittenFile{Lfn: w.lfn, Version: w.promise.GetVersion()}
	if err := ar.describe(a, w, f.File, prefix, out); err != nil {
		return nil, err
	}
	item := cache.Item{Ref: cache.Ref{LFN: w.lfn, Version: out.Version, Tag: a.GetAttempt()}, Size: out.GetSize()}
	path := disk.Descriptor(f.File)
	if w.promise.GetCacheOnly() && ar.cacheOutput(a, item, path) {
		return out, nil
	}
	err = ar.put(a, w, path, prefix, out)
	if err == nil && !w.promise.GetCacheOnly() && !ar.links(out.Pfn) {
		ar.cacheOutput(a, item, path)
	}
	return out, err
}

// largeOutput is from which size on, in bytes, an output is written to disk while its sums are
// found, or has none (Area.Unsummed). Of a smaller one the sums cost less than what saves them.
const largeOutput = 1 << 20

// describe says what tells an output, which nobody writes to, from others: its size and its sums,
// or the time at which it was written. A checkpoint has sums always: they tell whether the job has
// come further.
func (ar *Area) describe(a *Execution, w written, f *os.File, prefix string, out *wire.WrittenFile) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() >= largeOutput && !w.promise.GetCacheOnly() {
		sums := w.lfn == a.GetCheckpoint().GetLfn() || !ar.Unsummed || ar.Hashed || ar.Reach != nil
		if !sums && ar.linksTo(f, prefix) {
			out.Size, out.Written = info.Size(), storage.Written(info.ModTime())
			return nil
		}
		disk.BeginFlush(f, 0, info.Size())
	}
	sum, hash := adler32.New(), blake3.New()
	var sums io.Writer = sum
	if ar.Hashed {
		sums = io.MultiWriter(sum, hash)
	}
	if out.Size, err = readInto(a.Ctx, sums, f); err != nil {
		return err
	}
	ar.proven.add(info, sum.Sum32())
	out.Adler32 = sum.Sum32()
	if ar.Hashed {
		out.Blake3 = hash.Sum(nil)
	}
	return nil
}

// linksTo reports whether a file is stored in the state's own element by a link, so that it keeps
// its time of modification.
func (ar *Area) linksTo(f *os.File, prefix string) bool {
	return strings.HasPrefix(prefix, storage.StateScheme+":") && ar.mount.of(ar.Folder).Holds(disk.Descriptor(f)) &&
		ar.mount.of(ar.Folder) == storage.MountOf(ar.Roots.State)
}

func (ar *Area) cacheOutput(a *Execution, item cache.Item, path string) bool {
	if ar.Cache == nil {
		return false
	}
	err := ar.Cache.Add(a.Ctx, item, path)
	if err != nil {
		ar.Log.Info("output not kept in the cache", "lfn", item.LFN, "reason", err)
	}
	return err == nil
}

// forget takes outputs out of the cache that will not be committed.
func (ar *Area) forget(a *Execution, outputs []written) {
	if ar.Cache == nil {
		return
	}
	for _, w := range outputs {
		ar.Cache.Drop(cache.Ref{LFN: w.lfn, Version: w.promise.GetVersion(), Tag: a.GetAttempt()})
	}
}

// findOutputs finds what was promised, and the files of patterns in the order
// of their names. A file belongs to the first promise that it matches.
func findOutputs(a *Execution) (found []written, err error) {
	taken := map[string]bool{}
	for _, i := range a.In.files {
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

func findOutput(a *Execution, o *wire.OutputFile) (written, error) {
	path, err := a.PathOf(o.GetLfn())
	if err != nil {
		return written{}, err
	}
	kind, err := a.Slot.dir.Kind(path)
	if isMissing(err) && o.GetLfn() == a.Payload.GetLog() && a.makeLog(path) == nil {
		return written{o, o.GetLfn(), path}, nil
	}
	switch {
	case isMissing(err), errors.Is(err, syscall.ENOTDIR):
		return written{}, &missingOutput{o.GetLfn(), "is not there" + a.madeInstead()}
	case err != nil:
		return written{}, unusable(o.GetLfn(), err)
	case logical.IsFolder(o.GetLfn()) && kind.IsDir():
	case logical.IsFolder(o.GetLfn()):
		return written{}, &missingOutput{o.GetLfn(), fmt.Sprintf("is %s; a name that ends in / stands for a folder, which "+
			"the command has to make", beneath.KindOf(kind))}
	case kind.IsDir():
		return written{}, &missingOutput{
			o.GetLfn(), "is a folder; end the name in / to keep the folder with all that is in it",
		}
	case !kind.IsRegular():
		// What it is instead, the attempt to open it says.
		_, err := a.Slot.dir.Open(path)
		return written{}, unusable(o.GetLfn(), err)
	}
	return written{o, o.GetLfn(), path}, nil
}

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

// OpenLog opens the file under log, as the command has left it.
func (a *Execution) OpenLog() (*os.File, error) {
	path, err := a.PathOf(a.Payload.GetLog())
	if err != nil {
		return nil, err
	}
	return a.Slot.dir.Open(path)
}

func (a *Execution) makeLog(path string) error {
	a.Slot.bare = false
	f, err := a.Slot.dir.Create(path, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

// maxReport bounds the file of ReportVariable, in bytes.
const maxReport = 16 << 20

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
		if before, ok := records[path]; ok && before != n {
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
