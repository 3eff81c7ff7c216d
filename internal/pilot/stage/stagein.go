package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/cache"
	"fairway/internal/fault"
	"fairway/internal/logical"
	"fairway/internal/pilot/report"
	"fairway/internal/storage"
	"fairway/internal/storage/served"
	"fairway/internal/wire"
)

var stagedIn = fault.New("pilot.stagein.after")

// Inputs brings the inputs of an attempt into its sandbox.
type Inputs struct {
	ar      *Area
	attempt *Execution
	files   []*input
	ahead   []fetchedAhead
	above   string // the folder in the sandbox that was made for the input before
}

type input struct {
	cache.Item // its size is 0 if it is not known
	pfn        string
	sum        uint32     // of what a job made; 0 if it is not known
	written    uint32     // of what a job made and nobody has summed up: storage.Written; 0: see sum
	hash       cache.Hash // that copies in caches must have; zero if it is not known
	committed  bool       // the hash stands in the commit
	known      known      // what the key of the result knows it by; zero: of no matter
	ticket     []byte     // to read it through the server
	access     wire.Access
	url        string // by which the command reads it; empty: by path, or not located yet
	ahead      bool   // nobody needs it yet
	unstreamed error  // why it is staged in, although it was to be streamed
	path       string // in the sandbox, relative
	attempt    uint64 // that waits for it; 0: none does
	source     *wire.Source
	wait       *wait       // while an attempt waits for it
	cached     *cache.File // nil if it is read past the cache
	origin                 // where it comes from
	before     fs.FileInfo // as the command finds it; nil for a folder
	placed     fs.FileInfo // as it was linked just now, until it is checked; nil: it is looked at then
	unpacked   *unpacked   // of a folder: what the pilot has of it
	tree       *folderTree // of a folder: as the command finds it
}

type origin struct {
	home    string // of a replica, whose pfn is what the catalogue of the site says: where the run found it
	hit     bool   // it was in a cache of this host
	remote  bool   // it came from a cache of another host
	linked  bool   // it is a link to where it is stored, past the cache
	inPlace bool   // path is a link to where it is stored, for a command that reads it there
}

// NewInputs returns the inputs of an attempt; nothing has happened to them yet.
func NewInputs(ar *Area, a *Execution) *Inputs { return &Inputs{ar: ar, attempt: a} }

func newInput(f *wire.InputFile) *input {
	i := &input{Item: cache.Item{Ref: RefOf(f.GetFile()), Size: f.GetSize()}, pfn: f.GetPfn(), sum: f.GetAdler32(),
		written: f.GetWritten(), ticket: f.GetTicket(), access: f.GetAccess(), source: f.GetSource()}
	copy(i.hash[:], f.GetBlake3())
	copy(i.known[:], f.GetKnown())
	i.committed = f.GetCommitted() && i.hash != cache.Hash{}
	return i
}

// StageIn makes the sandbox as the command is to find it. The attempt has its slot.
func (in *Inputs) StageIn() error {
	a := in.attempt
	a.Slot.bare, in.above = false, ""
	if in.files == nil {
		for _, f := range a.GetInputs() {
			in.files = append(in.files, newInput(f))
		}
	}
	for _, i := range in.files {
		err := context.Cause(a.Ctx) // to make a link is over too soon to look at it
		if err == nil {
			err = in.add(i)
		}
		if err != nil {
			return fmt.Errorf("input %s: %w", i.LFN, err)
		}
	}
	if err := in.locate(); err != nil {
		return err
	}
	if len(a.GetOutputs()) > 0 {
		if err := in.makeOutputFolders(); err != nil {
			return err
		}
	}
	if c := a.GetCheckpoint(); c != nil {
		if err := in.makeCheckpointFolder(c); err != nil {
			return fmt.Errorf("checkpoint %s: %w", c.GetLfn(), err)
		}
	}
	if err := in.inform(); err != nil {
		return err
	}
	return stagedIn.Hit()
}

func (in *Inputs) add(i *input) (err error) {
	if i.path, err = in.attempt.PathOf(i.LFN); err != nil {
		return err
	}
	in.ar.atSite(in.attempt.Ctx, i)
	target := filepath.Join(in.attempt.Slot.Folder, i.path)
	if above := filepath.Dir(i.path); above != in.above {
		if err := MakeParents(in.attempt.Slot.Folder, i.path); err != nil {
			return err
		}
		in.above = above
	}
	if logical.IsFolder(i.LFN) {
		err = in.addFolder(i, target)
	} else if err = in.stream(i, target); err == nil && !i.streams() {
		if err = in.provide(i, target); err == nil && in.owned(i) {
			err = in.own(i, target)
		}
		if err == nil {
			in.noteCopied(i)
		}
	}
	in.count(i)
	return err
}

// provide makes a file appear, and makes sure that it is what the job is to read.
func (in *Inputs) provide(i *input, target string) error {
	i.attempt = in.attempt.GetAttempt()
	if err := in.ar.bring(in.attempt.Ctx, i); err != nil {
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
func (in *Inputs) check(i *input, target string) (err error) {
	if i.before, i.placed = i.placed, nil; i.before == nil {
		if i.before, err = os.Stat(target); err != nil {
			return err
		}
	}
	if !in.ar.intact(i) {
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
func (in *Inputs) placeAnew(i *input, target string, why error) (err error) {
	in.ar.Log.Warn("a cached file was written to; reading it again", "lfn", i.LFN, "reason", why)
	if i.cached != nil {
		in.ar.Cache.Drop(i.Ref)
		in.giveUpCached(i)
	}
	in.ar.leaveReplica(i, why)
	if err := os.Remove(target); err != nil {
		return err
	}
	if err := in.past(i, target); err != nil {
		return err
	}
	err = in.check(i, target)
	if damaged := (*damagedError)(nil); errors.As(err, &damaged) {
		err = &lostError{in.ar.lost(i, damaged.why)}
	}
	return err
}

// giveUpCached has the input read past the cache.
func (in *Inputs) giveUpCached(i *input) {
	i.cached.Release()
	i.cached, i.hit = nil, false
}

// place makes the file appear in the sandbox, unless the attempt before has
// left it there.
func (in *Inputs) place(i *input, target string) error {
	left := in.attempt.Slot.retained[i.path]
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
	if made, err := in.ar.linkOutside(i, target); made || err != nil {
		return err
	}
	return in.past(i, target)
}

func sameFile(path string, info fs.FileInfo) bool {
	there, err := os.Stat(path)
	return err == nil && os.SameFile(there, info)
}

// bring has the cache hold the file, unless it has no room for it.
func (ar *Area) bring(ctx context.Context, i *input) (err error) {
	c := ar.Cache
	if c == nil || i.cached != nil {
		return nil
	}
	if i.linked = i.known == (known{}) && ar.links(i.pfn); i.linked {
		return nil
	}
	var ok bool
	if i.cached, ok = c.Get(ctx, i.Item); ok {
		i.hit = true
		return nil
	}
	if i.attempt != 0 {
		defer ar.Waits.begin(i.attempt, i)()
	}
	ctx = served.WithTicket(ctx, i.pfn, i.ticket)
	if i.Size == 0 && i.pfn != "" && !i.madeByJob() {
		info, err := ar.Storage.Stat(ctx, i.pfn)
		if err != nil || info.Size < 0 {
			return err
		}
		i.Size = info.Size
	}
	if ar.Sharing != nil {
		err = ar.bringShared(ctx, i)
	} else {
		err = ar.fetch(ctx, i, func(path string) (int64, cache.Hash, error) { return ar.getSummed(ctx, i, path) })
	}
	if errors.Is(err, cache.ErrFull) || errors.Is(err, cache.ErrNoSpace) || outOfDisk(err) {
		ar.Log.Info("read past the cache", "lfn", i.LFN, "reason", err)
		return nil
	}
	return err
}

// links reports whether a file goes past the cache, since a link to where it is stored costs no
// more than one to a cached one.
func (ar *Area) links(pfn string) bool {
	if !ar.Spared || ar.Reach != nil || ar.Sharing != nil || pfn == "" || !storage.IsLocal(pfn) {
		return false
	}
	path, err := ar.Roots.Path(pfn)
	return err == nil && ar.mount.of(ar.Folder).Holds(path)
}

// mount remembers where a folder is mounted.
type mount struct {
	once sync.Once
	is   storage.Mount
}

func (m *mount) of(folder string) storage.Mount {
	m.once.Do(func() { m.is = storage.MountOf(folder) })
	return m.is
}

// linkOutside makes a link to a file from outside, as get does with three times as many system
// calls, and makes sure that it is the one that the TaskQueue has chosen. It reports whether the
// link could be made. Files in the state's own element are looked for beneath its folder.
func (ar *Area) linkOutside(i *input, target string) (made bool, err error) {
	if _, own := storage.StateName(i.pfn); own || !i.linked || i.madeByJob() {
		return false, nil
	}
	path, err := ar.Roots.Path(i.pfn)
	if err != nil || unix.Linkat(unix.AT_FDCWD, path, unix.AT_FDCWD, target, unix.AT_SYMLINK_FOLLOW) != nil {
		return false, nil //nolint:nilerr // get says what is the matter
	}
	info, err := os.Stat(target)
	switch {
	case err != nil:
		return true, err
	case !info.Mode().IsRegular():
		return false, os.Remove(target)
	case storage.TellsState(i.state()) && storage.TagOf(i.pfn, storage.InfoOf(info)) != i.state():
		return true, errors.Join(&changedError{ar.Roots.Shown(i.pfn)}, os.Remove(target))
	}
	i.Size, i.placed = info.Size(), info
	return true, nil
}

// fetch has the cache hold a file, which get writes to a path unless the cache of another user of
// this host has it. Of one that nobody needs yet the cache knows so before anybody can read it.
func (ar *Area) fetch(ctx context.Context, i *input, get func(path string) (int64, cache.Hash, error)) (err error) {
	marked, copied := false, false
	i.cached, i.hit, err = ar.Cache.Fetch(ctx, i.Item, func(path string) (size int64, hash cache.Hash, err error) {
		began := time.Now()
		if copied, err = ar.Cache.CopyFromGroup(ctx, i.Item, i.hash, path); copied {
			size, hash = i.Size, i.hash
		} else if err == nil {
			size, hash, err = get(path)
		}
		if err == nil && i.ahead {
			ar.Cache.MarkAhead(i.Ref, began)
			marked = true
		}
		return size, hash, err
	})
	if marked && err != nil { // it could not be named, at the last moment
		ar.Cache.TakeAhead(i.Ref)
	}
	i.hit = i.hit || copied && err == nil
	return err
}

// getSummed is get, with the hash of a file that nothing else tells from a damaged one
// when another pilot takes the cache over.
func (ar *Area) getSummed(ctx context.Context, i *input, path string) (size int64, of cache.Hash, err error) {
	size, err = ar.get(ctx, i, path)
	here := storage.IsLocal(i.pfn) && (!ar.Hashed || ar.Reach == nil || ar.Reach.inPlace(i.pfn))
	if err != nil || i.madeByJob() || here {
		return size, of, err
	}
	sums := i.newSums(true)
	if err = sums.readFile(ctx, path); err == nil {
		of = cache.HashOf(sums.blake3)
	}
	return size, of, err
}

// get reads a file from the storage element, and makes sure that it is the one
// that the TaskQueue has chosen: one that existed before may change at any time. What the site
// has instead is left for that if it cannot be read, or is another one.
func (ar *Area) get(ctx context.Context, i *input, path string) (int64, error) {
	size, err := ar.getChosen(ctx, i, path)
	if err != nil && ctx.Err() == nil && ar.leaveReplica(i, err) {
		size, err = ar.getChosen(ctx, i, path)
	}
	return size, err
}

func (ar *Area) getChosen(ctx context.Context, i *input, path string) (int64, error) {
	size, err := ar.getBy(ctx, i, path, func(ctx context.Context) (int64, error) {
		if i.known != (known{}) && ar.here(ctx, i) == nil {
			return ar.copyApart(ctx, i.pfn, path)
		}
		return ar.Storage.Get(ar.Waits.fromStorage(ctx, i), i.pfn, path)
	})
	if err != nil || i.known == (known{}) {
		return size, err
	}
	if err = ar.compareKnown(ctx, i, path); isSpoilt(err) {
		err = &changedError{ar.Roots.Shown(i.pfn)}
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return size, err
}

func (ar *Area) getBy(
	ctx context.Context, i *input, path string, read func(context.Context) (int64, error),
) (int64, error) {
	if i.pfn == "" {
		return 0, &lostError{ar.lost(i, "is in no cache of this host, nor on a storage element")}
	}
	ctx = served.WithTicket(ctx, i.pfn, i.ticket)
	if i.Size > 0 {
		ctx = storage.WithMost(ctx, i.Size)
	}
	size, err := read(ctx)
	if i.madeByJob() {
		return size, ar.lostIf(i, size, err, path)
	}
	if _, grown := errors.AsType[*storage.MoreError](err); err != nil && !grown || !storage.TellsState(i.state()) {
		return size, err
	}
	now, failed := ar.Storage.Stat(ctx, i.pfn)
	err = errors.Join(err, failed)
	if failed == nil && storage.TagOf(i.pfn, now) != i.state() {
		err = &changedError{ar.Roots.Shown(i.pfn)}
	}
	if err != nil {
		_ = os.Remove(path)
	}
	return size, err
}

// lostIf says what is wrong with the stored file of an input that a job made, as far as
// that can be told without reading it. A file at path goes then.
func (ar *Area) lostIf(i *input, size int64, err error, path string) error {
	switch {
	case isMissing(err):
		return &lostError{ar.lost(i, "is not there")}
	case err != nil:
		return err
	case size != i.Size:
		_ = os.Remove(path)
		return &lostError{ar.lost(i, i.wrongSize(size).Error())}
	}
	return nil
}

// intact reports whether nobody has written to a file in the sandbox since its job
// was made. Where this node sees another time than the server, only the size tells.
func (ar *Area) intact(i *input) bool {
	if !storage.IsLocal(i.pfn) || storage.MayBe(i.state(), i.before.Size(), i.before.ModTime()) {
		return true
	}
	return ar.Reach != nil && !ar.Reach.exact(i.pfn) && i.before.Size() == i.Size
}

// changedError says that an input is no longer what the job is to read.
type changedError struct{ pfn string }

func (e *changedError) Error() string {
	return e.pfn + " has changed since this run took it up; start the run again to have it read as it is now"
}

// past stages the file in without the cache.
func (in *Inputs) past(i *input, target string) error {
	if !storage.IsLocal(i.pfn) {
		defer in.ar.Waits.begin(in.attempt.GetAttempt(), i)()
	}
	size, err := in.ar.get(in.attempt.Ctx, i, target)
	if err == nil && i.Size != 0 && size != i.Size {
		err = fmt.Errorf("%s has %d bytes and should have %d", in.ar.Roots.Shown(i.pfn), size, i.Size)
	}
	i.Size = size
	return err
}

func (in *Inputs) count(i *input) {
	u := in.attempt.Result.Usage
	if i.streams() || i.linked { // nothing of it comes here
		return
	}
	if !i.hit && !i.remote {
		u.CacheMisses++
		u.BytesStaged += i.Size
		return
	}
	u.CacheHits++
	u.BytesCached += i.Size
	if i.remote {
		u.RemoteHits++
		u.BytesRemote += i.Size
	} else if in.ar.Cache == nil { // it was an unpacked folder
		return
	} else if began, took, first := in.ar.Cache.TakeAhead(i.Ref); first {
		u.PrefetchHits++
		u.BytesPrefetched += i.Size
		in.ahead = append(in.ahead, fetchedAhead{began, took})
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

// CheckUnchanged fails an attempt that wrote to an input, whatever else is the
// matter with it: other jobs read the same file, so the cache must not keep it.
func (in *Inputs) CheckUnchanged() {
	defer in.keepParent()()
	for _, i := range in.files {
		if !in.changed(i) {
			continue
		}
		r := in.attempt.Result
		r.Outcome, r.Outputs = wire.Outcome_OUTCOME_INPUT_CHANGED, nil
		who := "the command"
		if !i.madeByJob() && in.spoiled(i) != "" { // the file is a person's, who may have written to it
			who = "the command, or somebody else meanwhile,"
		}
		r.Message = report.Clip(who + " wrote to its input " + i.LFN + " in place" + in.spoiled(i) +
			"; have it write to a copy")
		if i.madeByJob() && !in.attempt.GetPrivate() {
			r.Outcome = wire.Outcome_OUTCOME_INPUT_LOST
			r.Message = report.Clip("this command, or another one that reads it, wrote to its input " + i.LFN + " in place" +
				in.spoiled(i))
			if in.spoiled(i) != "" {
				r.Lost = append(r.Lost, in.ar.lost(i, "was written to by a job that reads it"))
			}
		}
		if i.unpacked != nil {
			in.ar.folders.spoilt(i.unpacked) // what is in the cache is its archive
		} else if in.ar.Cache != nil {
			in.ar.Cache.Drop(i.Ref)
		}
	}
}

// Spoilt reports whether any input was written to since it was staged in.
func (in *Inputs) Spoilt() bool {
	defer in.keepParent()()
	return slices.ContainsFunc(in.files, in.changed)
}

// keepParent is that of the sandbox: most inputs are in the same folder as the one before.
func (in *Inputs) keepParent() (end func()) {
	if in.attempt.Slot == nil {
		return func() {}
	}
	return in.attempt.Slot.dir.KeepParent()
}

// changed reports whether an input was written to, wherever the command has moved it:
// the cache, the storage element or the person whose file it is have links to it.
// Another file that the command put in its place does no harm.
func (in *Inputs) changed(i *input) bool {
	if i.inPlace || i.access == wire.Access_ACCESS_COPY { // see CheckStreamed; a copy is the command's own
		return false
	}
	if i.tree != nil {
		return i.tree.changed()
	}
	if i.before == nil {
		return false
	}
	if now, err := in.attempt.Slot.dir.Status(i.path); err == nil && isFile(&now, i.before) {
		return now.Size != i.before.Size() || now.Mtim.Nano() != i.before.ModTime().UnixNano()
	}
	var others []string
	if i.cached != nil {
		others = append(others, i.cached.Path())
	}
	if path, err := in.ar.Roots.Path(i.pfn); err == nil {
		others = append(others, path)
	}
	for _, path := range others {
		if now, err := os.Stat(path); err == nil && os.SameFile(now, i.before) {
			return !sameState(now, i.before)
		}
	}
	return false
}

// isFile reports whether a status is that of a file.
func isFile(now *unix.Stat_t, file fs.FileInfo) bool {
	st := file.Sys().(*syscall.Stat_t)
	return now.Dev == st.Dev && now.Ino == st.Ino
}

// spoiled names the stored file if that is the same one.
func (in *Inputs) spoiled(i *input) string {
	path, err := in.ar.Roots.Path(i.pfn)
	if err != nil || i.pfn == "" || i.before == nil || !sameFile(path, i.before) {
		return ""
	}
	return ", and so changed " + path
}

// Release ends the use of cached files.
func (in *Inputs) Release() {
	for _, i := range in.files {
		if i.cached != nil {
			i.cached.Release()
			i.cached = nil
		}
		if i.unpacked != nil {
			in.ar.folders.release(i.unpacked)
			i.unpacked = nil
		}
	}
	if in.attempt.Slot != nil {
		in.attempt.Slot.staged = in.files
	}
}

// makeOutputFolders makes the folders into which outputs are promised.
func (in *Inputs) makeOutputFolders() error {
	for _, o := range in.attempt.GetOutputs() {
		folder, err := in.attempt.folderOf(o)
		if err != nil {
			return fmt.Errorf("output %s: %w", o.GetLfn(), err)
		}
		if folder == "." {
			continue
		}
		if err := os.MkdirAll(filepath.Join(in.attempt.Slot.Folder, folder), 0o755); err != nil {
			return err
		}
	}
	return nil
}

// MakeParents makes the folders above a path that is relative to folder.
func MakeParents(folder, path string) error {
	parent := filepath.Dir(path)
	if parent == "." {
		return nil
	}
	return os.MkdirAll(filepath.Join(folder, parent), 0o755)
}

// TakeCached holds the inputs in the cache, and reports whether all are there or need but a link.
func (in *Inputs) TakeCached() bool {
	for _, f := range in.attempt.GetInputs() {
		i := newInput(f)
		if logical.IsFolder(i.LFN) {
			i.unpacked = in.ar.folders.get(folderKey{i.Ref, i.pfn})
			i.hit = i.unpacked != nil
		}
		if !i.hit && in.ar.Cache != nil {
			i.linked = i.known == (known{}) && in.ar.links(i.pfn) && !logical.IsFolder(i.LFN)
		}
		if !i.hit && !i.linked && in.ar.Cache != nil {
			i.cached, i.hit = in.ar.Cache.Get(in.attempt.Ctx, i.Item)
		}
		if !i.hit && !i.linked {
			in.Release()
			in.files = nil
			return false
		}
		in.files = append(in.files, i)
	}
	return true
}

// RefToWire is a file as messages name it.
func RefToWire(ref cache.Ref) *wire.FileRef {
	return &wire.FileRef{Lfn: ref.LFN, Version: ref.Version, Tag: ref.Tag}
}

// HashToWire is a hash as messages tell it: nothing where it is not known.
func HashToWire(h cache.Hash) []byte {
	if h == (cache.Hash{}) {
		return nil
	}
	return h[:]
}

// RefOf is a file as the cache names it.
func RefOf(f *wire.FileRef) cache.Ref {
	return cache.Ref{LFN: f.GetLfn(), Version: f.GetVersion(), Tag: f.GetTag()}
}
