package publish

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"fairway/internal/beneath"
	"fairway/internal/fault"
	"fairway/internal/server/convert"
	"fairway/internal/server/folder"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/storage"
	"fairway/internal/taskqueue"
	"hash/adler32"
)

var beforeRemove = fault.New("remove.before")

// removeLoop removes physical files that nobody needs, until ctx ends. A file
// that cannot be removed stays, which is told once: it takes room but does no
// harm, and the next server tries again.
func (f *Storage) removeLoop(ctx context.Context) {
	if f.sched.WaitUntil(ctx, f.removesAt) != nil {
		return
	}
	for {
		batch, err := f.toRemove.Take(ctx, f.sched)
		if err != nil {
			return
		}
		_ = beforeRemove.Hit()
		if f.assert != nil && f.assert(ctx) != nil {
			return
		}
		for _, pfn := range batch {
			if err := f.removeFile(ctx, pfn); err != nil {
				f.log.Warn("a file that nobody needs could not be removed", "pfn", pfn, "error", err)
			}
		}
		err = f.inbox.Deliver(ctx, func() *loop.Request {
			return &loop.Request{Dispatch: convert.Each(batch, func(pfn string) taskqueue.Input {
				return taskqueue.Removed{PFN: pfn}
			})}
		})
		if err != nil {
			return
		}
	}
}

// removeFile removes a file that this state has stored. What the state stored that this
// one is a copy of stays, and anything else was never stored.
func (f *Storage) removeFile(ctx context.Context, pfn string) error {
	if !f.folders.Owns(pfn) {
		if slices.ContainsFunc(f.stores, func(prefix string) bool { return strings.HasPrefix(pfn, prefix) }) {
			return nil
		}
		return errors.New("it is not in the storage of this workflow")
	}
	return f.prompt.Remove(ctx, pfn)
}

// Sweep removes stored files of this state that are not needed: what pilots
// stored and could not report any more, or what earlier runs committed. Nothing
// else in the storage element is touched. It may be done only when no pilot is
// left.
func (f *Storage) Sweep(ctx context.Context, needed Stored) error {
	if f.assert != nil {
		return nil // if it were frozen amid that, it would remove what the next server knows to be needed
	}
	return errors.Join(f.sweepOwn(needed), f.sweepStores(ctx, needed))
}

func (f *Storage) sweepOwn(needed Stored) error {
	stored, err := beneath.Open(f.folders.Storage)
	if err != nil {
		return folder.IgnoreMissing(err)
	}
	defer func() { _ = stored.Close() }()
	var failures []error
	err = stored.Walk(func(name string, info fs.FileInfo) error {
		if isStoredName(name) && !needed[name] && info.Mode().IsRegular() {
			failures = append(failures, stored.Remove(name))
		}
		return nil
	})
	return errors.Join(append(failures, err)...)
}

// Stored are files of the state: by their names in its storage element, and by PFNs
// where they are at other places.
type Stored map[string]bool

// Add adds those of some PFNs that are there.
func (n Stored) Add(pfns ...string) {
	for _, pfn := range pfns {
		if name, ok := storage.StateName(pfn); ok {
			n[name] = true
		} else if pfn != "" {
			n[canonical(pfn)] = true
		}
	}
}

// Merge adds those of another.
func (n Stored) Merge(other Stored) {
	for name := range other {
		n[name] = true
	}
}

// StoredOf are the stored files of a run.
func StoredOf(c *state.Cores) Stored {
	needed := Stored{}
	for job := range c.Dispatch.Jobs(c.Run, 0) {
		detail, _ := c.Dispatch.Detail(job.ID)
		for _, file := range detail.Writes {
			needed.Add(file.PFN)
		}
	}
	return needed
}

// attemptSuffix is what pilots append to an LFN for the name of a stored file.
var attemptSuffix = regexp.MustCompile(`\.v[1-9][0-9]*\.a([1-9][0-9]*)$`)

// storedAs is the LFN of the file of a name in the storage element.
func storedAs(name string) (lfn string, ok bool) {
	at := attemptSuffix.FindStringIndex(name)
	if at == nil {
		return "", false
	}
	return name[:at[0]], true
}

// A run begins with a look at the stored files that it needs, or may take from earlier
// runs: whether they are there, with their size, and the time of modification of those that have
// no sum. What others hold is found out by who reads them.

// LookTime is how long a server is waited for that is asked for files. What it has counts
// as there if it does not answer.
const LookTime = 20 * time.Second

// promptly decorates an element for questions to servers. note is told which are slow.
func promptly(element storage.Element, note func(string)) storage.Element {
	return storage.Prompt(element, LookTime, func(host string, why error) {
		note(storage.SlowText(host, why, LookTime.String()))
	})
}

// LostFiles are those of some stored files that are not there or have another size.
// What cannot be looked at counts as there, since it may be so again. note is told of servers
// that do not answer, from any goroutine. Looks end with ctx, and then the rest counts as
// there.
func LostFiles(
	ctx context.Context, at storage.Roots, files []taskqueue.StoredFile, note func(string),
) []taskqueue.LostFile {
	return lostFiles(ctx, at, sync.OnceValue(func() storage.Element { return promptly(elementsOf(at), note) }), files,
		note)
}

func lostFiles(
	ctx context.Context, at storage.Roots, element func() storage.Element, files []taskqueue.StoredFile, note func(string),
) []taskqueue.LostFile {
	why := make([]string, len(files))
	// A look takes a moment in the kernel, and there may be a million of them.
	part := max(minLooked, (len(files)+runtime.GOMAXPROCS(0)-1)/runtime.GOMAXPROCS(0))
	var locally sync.WaitGroup
	for begin := 0; begin < len(files); begin += part {
		locally.Go(func() {
			for i := begin; i < min(begin+part, len(files)); i++ {
				if storage.IsLocal(files[i].PFN) {
					why[i] = whyLost(at, &files[i])
				}
			}
		})
	}
	var group errgroup.Group
	group.SetLimit(storage.DefaultTransfers)
	for i := range files {
		if storage.IsLocal(files[i].PFN) {
			continue
		}
		group.Go(func() error {
			var err error
			why[i], err = whyLostAt(ctx, element(), &files[i])
			if away, ok := errors.AsType[*storage.AwayError](err); ok && ctx.Err() == nil {
				note(fmt.Sprintf("%v: what is stored there counts as there", away))
			}
			return nil
		})
	}
	_ = group.Wait()
	locally.Wait()
	var lost []taskqueue.LostFile
	for i, file := range files {
		if why[i] != "" {
			lost = append(lost, taskqueue.LostFile{File: file.File, PFN: file.PFN, Why: at.Shown(file.PFN) + " " + why[i]})
		}
	}
	return lost
}

// minLooked is how many files are looked at by one goroutine, at least.
const minLooked = 1024

// whyLostAt asks the element that a file was stored at. An error says that it is not known.
func whyLostAt(ctx context.Context, element storage.Element, file *taskqueue.StoredFile) (why string, err error) {
	info, err := element.Stat(ctx, file.PFN)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is not there", nil
	case err == nil && info.Size >= 0 && info.Size != file.Size:
		return otherSize(info.Size, file.Size), nil
	}
	return "", err
}

func otherSize(has, should int64) string {
	return fmt.Sprintf("has %d bytes and should have %d", has, should)
}

func whyLost(at storage.Roots, file *taskqueue.StoredFile) string {
	path, err := at.Path(file.PFN)
	if err != nil {
		return ""
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "is not there"
	case err != nil:
		return ""
	case !info.Mode().IsRegular():
		return "is not a regular file"
	case info.Size() != file.Size:
		return otherSize(info.Size(), file.Size)
	case file.Written != 0 && storage.Written(info.ModTime()) != file.Written:
		return "was written to, or replaced, since it was stored"
	}
	return ""
}

// lostError says that the stored file of a result is not there, or is not what its job has
// stored. It counts as lost then, and is made again.
type lostError struct{ why string }

func (e *lostError) Error() string { return "the stored file " + e.why }

// asReported returns an error if a file that is to be published has not the size that a
// pilot has reported, as far as this machine can see it.
func asReported(at storage.Roots, b *taskqueue.StoredFile) error {
	if why := whyLost(at, b); why != "" {
		return &lostError{why}
	}
	return nil
}

// asWritten returns an error if a copy of a file that is to be published has not the
// checksum that a pilot has reported.
func asWritten(copied io.Reader, b *taskqueue.StoredFile) error {
	if b.Adler32 == 0 {
		return nil
	}
	sum := adler32.New()
	if _, err := io.Copy(sum, copied); err != nil {
		return err
	}
	if has := sum.Sum32(); has != b.Adler32 {
		return &lostError{fmt.Sprintf("has the checksum %08x and should have %08x: somebody wrote to it, or the disk has "+
			"damaged it", has, b.Adler32)}
	}
	return nil
}
