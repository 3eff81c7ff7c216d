package pilot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"fairway/internal/cache"
	"fairway/internal/fault"
	"fairway/internal/logical"
	"fairway/internal/pilot/report"
	"fairway/internal/storage"
	"fairway/internal/storage/served"
	"fairway/internal/wire"
)

var stagedIn = fault.New("pilot.stagein.after")

// stageIn brings the inputs of an attempt into its sandbox.
type stageIn struct {
	*pilot
	attempt *attempt
	files   []*input
}

// input is one file that an attempt reads.
type input struct {
	cache.Item // its size is 0 if it is not known
	pfn        string
	sum        uint32      // of what a job made; 0 if it is not known
	ticket     []byte      // to read it through the server
	path       string      // in the sandbox, relative
	cached     *cache.File // nil if it is read past the cache
	hit        bool        // it was in a cache of this host
	before     fs.FileInfo // as the command finds it; nil for a folder
	unpacked   *unpacked   // of a folder: what the pilot has of it
	tree       *folderTree // of a folder: as the command finds it
}

func newInput(f *wire.InputFile) *input {
	return &input{Item: cache.Item{Ref: refOf(f.GetFile()), Size: f.GetSize()}, pfn: f.GetPfn(), sum: f.GetAdler32(), ticket: f.GetTicket()}
}

func (in *stageIn) run() error {
	a := in.attempt
	if in.files == nil {
		for _, f := range a.GetInputs() {
			in.files = append(in.files, newInput(f))
		}
	}
	for _, i := range in.files {
		if err := in.add(i); err != nil {
			return fmt.Errorf("input %s: %w", i.LFN, err)
		}
	}
	if len(a.GetOutputs()) > 0 {
		if err := in.makeOutputFolders(); err != nil {
			return err
		}
	}
	if len(in.files) > 0 || len(a.GetOutputs()) > 0 {
		if err := in.inform(); err != nil {
			return err
		}
	}
	return stagedIn.Hit()
}

func (in *stageIn) add(i *input) (err error) {
	if i.path, err = in.attempt.pathOf(i.LFN); err != nil {
		return err
	}
	target := filepath.Join(in.attempt.slot.folder, i.path)
	if err := makeParents(in.attempt.slot.folder, i.path); err != nil {
		return err
	}
	if logical.IsFolder(i.LFN) {
		err = in.addFolder(i, target)
	} else if err = in.provide(i, target); err == nil && in.attempt.GetPrivate() {
		err = in.own(i, target)
	}
	in.count(i)
	return err
}

// provide makes a file appear, and makes sure that it is what the job is to read.
func (in *stageIn) provide(i *input, target string) error {
	if err := in.bring(in.attempt.ctx, i); err != nil {
		return err
	}
	err := in.place(i, target)
	if isMissing(err) && i.cached != nil { // another attempt has spoilt it, and it was dropped
		in.giveUpCached(i)
		err = in.past(i, target)
	}
	if err != nil {
		return err
	}
	if err = in.check(i, target); isSpoilt(err) {
		err = in.placeAnew(i, target, err)
	}
	return err
}

// check looks whether a file in the sandbox is what the job is to read.
func (in *stageIn) check(i *input, target string) (err error) {
	if i.before, err = os.Stat(target); err != nil {
		return err
	}
	if !in.intact(i) {
		return &changedError{i.pfn}
	}
	return in.verify(i, target)
}

func isSpoilt(err error) bool {
	var changed *changedError
	var damaged *damagedError
	return errors.As(err, &changed) || errors.As(err, &damaged)
}

// placeAnew is for a file that was written to since it came into the cache, or
// into the sandbox.
func (in *stageIn) placeAnew(i *input, target string, why error) (err error) {
	in.log.Warn("a cached file was written to; reading it again", "lfn", i.LFN, "reason", why)
	if i.cached != nil {
		in.caching.cache.Drop(i.Ref)
		in.giveUpCached(i)
	}
	if err := os.Remove(target); err != nil {
		return err
	}
	if err := in.past(i, target); err != nil {
		return err
	}
	err = in.check(i, target)
	if damaged := (*damagedError)(nil); errors.As(err, &damaged) {
		err = &lostError{in.lost(i, damaged.why)}
	}
	return err
}

// giveUpCached has the input read past the cache.
func (in *stageIn) giveUpCached(i *input) {
	i.cached.Release()
	i.cached, i.hit = nil, false
}

// place makes the file appear in the sandbox, unless the attempt before has
// left it there.
func (in *stageIn) place(i *input, target string) error {
	left := in.attempt.slot.retained[i.path]
	switch {
	case left != nil && i.cached == nil:
		i.Size = left.Size
		return nil
	case left != nil && sameFile(i.cached.Path(), left.before):
		return nil
	case left != nil:
		if err := os.Remove(target); err != nil {
			return err
		}
	}
	if i.cached != nil {
		return linkInto(i.cached.Path(), target)
	}
	return in.past(i, target)
}

func sameFile(path string, info fs.FileInfo) bool {
	there, err := os.Stat(path)
	return err == nil && os.SameFile(there, info)
}

// bring has the cache hold the file, unless it has no room for it.
func (p *pilot) bring(ctx context.Context, i *input) (err error) {
	c := p.caching.cache
	if c == nil || i.cached != nil {
		return nil
	}
	var ok bool
	if i.cached, ok = c.Get(ctx, i.Item); ok {
		i.hit = true
		return nil
	}
	ctx = served.WithTicket(ctx, i.pfn, i.ticket)
	if i.Size == 0 && i.pfn != "" && !i.madeByJob() {
		info, err := p.storage.Stat(ctx, i.pfn)
		if err != nil || info.Size < 0 {
			return err
		}
		i.Size = info.Size
	}
	i.cached, i.hit, err = c.FetchSummed(ctx, i.Item, func(path string) (int64, uint32, error) { return p.getSummed(ctx, i, path) })
	if errors.Is(err, cache.ErrFull) || errors.Is(err, cache.ErrNoSpace) || outOfDisk(err) {
		p.log.Info("read past the cache", "lfn", i.LFN, "reason", err)
		return nil
	}
	return err
}

// getSummed is get, with the checksum of a file that nothing else tells from a
// damaged one when another pilot takes the cache over.
func (p *pilot) getSummed(ctx context.Context, i *input, path string) (size int64, sum uint32, err error) {
	size, err = p.get(ctx, i, path)
	if err != nil || i.madeByJob() || storage.IsLocal(i.pfn) {
		return size, 0, err
	}
	sum, err = checksumOf(ctx, path)
	return size, sum, err
}

func checksumOf(ctx context.Context, path string) (uint32, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	sum, _, err := checksum(ctx, f)
	return sum, err
}

// get reads a file from the storage element, and makes sure that it is the one
// that the TaskQueue has chosen: one that existed before may change at any time.
func (p *pilot) get(ctx context.Context, i *input, path string) (int64, error) {
	if i.pfn == "" {
		return 0, &lostError{p.lost(i, "is in no cache of this host, nor on a storage element")}
	}
	ctx = served.WithTicket(ctx, i.pfn, i.ticket)
	size, err := p.storage.Get(ctx, i.pfn, path)
	if i.madeByJob() {
		return size, p.lostIf(i, size, err, path)
	}
	if err != nil || !storage.TellsState(i.Tag) {
		return size, err
	}
	now, err := p.storage.Stat(ctx, i.pfn)
	if err == nil && storage.TagOf(i.pfn, now) != i.Tag {
		err = &changedError{p.places.Shown(i.pfn)}
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return size, err
}

// lostIf says what is wrong with the stored file of an input that a job made, as far as
// that can be told without reading it. A file at path goes then.
func (p *pilot) lostIf(i *input, size int64, err error, path string) error {
	switch {
	case isMissing(err):
		return &lostError{p.lost(i, "is not there")}
	case err != nil:
		return err
	case size != i.Size:
		_ = os.Remove(path)
		return &lostError{p.lost(i, i.wrongSize(size).Error())}
	}
	return nil
}

// intact says of a file in the sandbox whether it was written to since its job
// was made. Where this node sees another time than the server, only the size tells.
func (p *pilot) intact(i *input) bool {
	if !storage.IsLocal(i.pfn) || storage.MayBe(i.Tag, i.before.Size(), i.before.ModTime()) {
		return true
	}
	return p.reach != nil && !p.reach.exact(i.pfn) && i.before.Size() == i.Size
}

// changedError says that an input is no longer what the job is to read.
type changedError struct{ pfn string }

func (e *changedError) Error() string {
	return e.pfn + " has changed since this run took it up; start the run again to have it read as it is now"
}

// past stages the file in without the cache.
func (in *stageIn) past(i *input, target string) error {
	size, err := in.get(in.attempt.ctx, i, target)
	if err == nil && i.Size != 0 && size != i.Size {
		err = fmt.Errorf("%s has %d bytes and should have %d", in.places.Shown(i.pfn), size, i.Size)
	}
	i.Size = size
	return err
}

func (in *stageIn) count(i *input) {
	u := in.attempt.result.Usage
	if i.hit {
		u.CacheHits++
		u.BytesCached += i.Size
	} else {
		u.CacheMisses++
		u.BytesStaged += i.Size
	}
}

// linkInto makes the file appear at target: by a hard link, so that what the
// cache does later does not matter, or by a symbolic one to another file
// system; the file is in use as long as the attempt runs.
func linkInto(path, target string) error {
	err := os.Link(path, target)
	if err != nil && !errors.Is(err, fs.ErrExist) && !isMissing(err) {
		err = os.Symlink(path, target)
	}
	return err
}

// checkUnchanged fails an attempt that wrote to an input, whatever else is the
// matter with it: other jobs read the same file, so the cache must not keep it.
func (in *stageIn) checkUnchanged() {
	for _, i := range in.files {
		if !in.changed(i) {
			continue
		}
		r := in.attempt.result
		r.Outcome, r.Outputs = wire.Outcome_OUTCOME_INPUT_CHANGED, nil
		r.Message = report.Clip("the command wrote to its input " + i.LFN + " in place" + in.spoiled(i) + "; have it write to a copy")
		if i.madeByJob() && !in.attempt.GetPrivate() {
			r.Outcome = wire.Outcome_OUTCOME_INPUT_LOST
			r.Message = report.Clip("this command, or another one that reads it, wrote to its input " + i.LFN + " in place" + in.spoiled(i))
			if in.spoiled(i) != "" {
				r.Lost = append(r.Lost, in.lost(i, "was written to by a job that reads it"))
			}
		}
		if i.unpacked != nil {
			in.folders.spoilt(i.unpacked) // what is in the cache is its archive
		} else if in.caching.cache != nil {
			in.caching.cache.Drop(i.Ref)
		}
	}
}

// spoilt reports whether any input was written to since it was staged in.
func (in *stageIn) spoilt() bool { return slices.ContainsFunc(in.files, in.changed) }

// changed reports whether an input was written to, wherever the command has moved it:
// the cache, the storage element or the person whose file it is have links to it.
// Another file that the command put in its place does no harm.
func (in *stageIn) changed(i *input) bool {
	if i.tree != nil {
		return i.tree.changed()
	}
	if i.before == nil {
		return false
	}
	if now, err := in.attempt.slot.dir.Lstat(i.path); err == nil && os.SameFile(now, i.before) {
		return !sameState(now, i.before)
	}
	var others []string
	if i.cached != nil {
		others = append(others, i.cached.Path())
	}
	if path, err := in.places.Path(i.pfn); err == nil {
		others = append(others, path)
	}
	for _, path := range others {
		if now, err := os.Stat(path); err == nil && os.SameFile(now, i.before) {
			return !sameState(now, i.before)
		}
	}
	return false
}

// spoiled names the stored file if that is the same one.
func (in *stageIn) spoiled(i *input) string {
	path, err := in.places.Path(i.pfn)
	if err != nil || i.pfn == "" || i.before == nil || !sameFile(path, i.before) {
		return ""
	}
	return ", and so changed " + path
}

// release ends the use of cached files.
func (in *stageIn) release() {
	for _, i := range in.files {
		if i.cached != nil {
			i.cached.Release()
			i.cached = nil
		}
		if i.unpacked != nil {
			in.folders.giveBack(i.unpacked)
			i.unpacked = nil
		}
	}
}

// makeOutputFolders makes the folders into which outputs are promised.
func (in *stageIn) makeOutputFolders() error {
	for _, o := range in.attempt.GetOutputs() {
		path, err := in.attempt.pathOf(o.GetLfn())
		if err != nil {
			return fmt.Errorf("output %s: %w", o.GetLfn(), err)
		}
		if err := makeParents(in.attempt.slot.folder, literalFolder(path)); err != nil {
			return err
		}
	}
	return nil
}

// makeParents makes the folders above a path that is relative to folder.
func makeParents(folder, path string) error {
	parent := filepath.Dir(path)
	if parent == "." {
		return nil
	}
	return os.MkdirAll(filepath.Join(folder, parent), 0o755)
}

// standardInput is an input that the payload names, or nothing.
func (in *stageIn) standardInput() (*os.File, error) {
	names := in.attempt.GetPayload().GetStdin()
	if len(names) == 0 {
		return in.base.null, nil
	}
	path, err := in.attempt.pathOf(names[0])
	if err != nil {
		return nil, err
	}
	return os.Open(filepath.Join(in.attempt.slot.folder, path))
}
