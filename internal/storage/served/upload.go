package served

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/zeebo/blake3"

	"fairway/internal/beneath"
	"fairway/internal/disk"
	"fairway/internal/storage"
)

// UnfinishedOfLaunch is how many unfinished files of one launch are kept. Beyond
// it the one goes that nobody has written to for longest.
const UnfinishedOfLaunch = 64

// uploads are the files that are not complete, in a folder. The name of each tells
// whose it is and what it is to become, sums included. So what was sent of one
// file is never taken for a part of another.
type uploads struct {
	folder string

	mu     sync.Mutex // guards active, and superseded of those in it
	active map[string]*upload
}

// upload is the use of an unfinished file by one request.
type upload struct {
	of         *uploads
	name       string
	in         *beneath.Folder
	file       *os.File
	held       int64
	control    *http.ResponseController
	superseded bool
	done       chan struct{}
}

func nameOf(launch string, q *request) string {
	h := blake3.New()
	_, _ = fmt.Fprintf(h, "%d %s%d %o %x%x", len(q.pfn), q.pfn, q.file.size, q.file.mode, q.file.sums.adler32,
		q.file.sums.blake3)
	return prefixOf(launch) + hex.EncodeToString(h.Sum(nil)[:16])
}

func prefixOf(launch string) string {
	sum := blake3.Sum256([]byte(launch))
	return disk.PartPrefix + hex.EncodeToString(sum[:8]) + "-"
}

func (u *uploads) held(name string) (int64, error) {
	folder, err := beneath.Open(u.folder)
	if err != nil {
		return 0, ignoreMissing(err)
	}
	defer func() { _ = folder.Close() }()
	info, err := folder.Lstat(name)
	if err != nil || !info.Mode().IsRegular() {
		return 0, ignoreMissing(err)
	}
	return info.Size(), nil
}

// forget removes an unfinished file whose contents have their name. A request that
// still has it open ends well too.
func (u *uploads) forget(name string) error {
	folder, err := beneath.Open(u.folder)
	if err != nil {
		return ignoreMissing(err)
	}
	defer func() { _ = folder.Close() }()
	return ignoreMissing(folder.Remove(name))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// begin takes an unfinished file for a request. Another one that has it is ended:
// its pilot has given it up, or it would not ask again.
func (u *uploads) begin(
	ctx context.Context, launch string, q *request, control *http.ResponseController,
) (*upload, error) {
	one := &upload{of: u, name: nameOf(launch, q), control: control, done: make(chan struct{})}
	for {
		before := u.take(one)
		if before == nil {
			break
		}
		select {
		case <-before.done:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if err := one.open(launch); err != nil {
		one.end()
		return nil, storage.Full(err)
	}
	return one, nil
}

// take makes an upload the only one of its file, or returns the one that must end
// first.
func (u *uploads) take(one *upload) *upload {
	u.mu.Lock()
	defer u.mu.Unlock()
	before := u.active[one.name]
	if before == nil {
		u.active[one.name] = one
		return nil
	}
	before.supersede()
	return before
}

// supersede has a request end that has the file. The caller holds of.mu.
func (one *upload) supersede() {
	one.superseded = true
	_ = one.control.SetReadDeadline(time.Unix(1, 0))
}

// giveUp ends the request that has a file, if there is one, and waits for that. Else it
// might go on writing what its connection still holds, and the pilot would send that again.
func (u *uploads) giveUp(ctx context.Context, name string) error {
	u.mu.Lock()
	before := u.active[name]
	if before != nil {
		before.supersede()
	}
	u.mu.Unlock()
	if before == nil {
		return nil
	}
	select {
	case <-before.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (one *upload) open(launch string) (err error) {
	if err := os.MkdirAll(one.of.folder, 0o700); err != nil {
		return err
	}
	if one.in, err = beneath.Open(one.of.folder); err != nil {
		return err
	}
	there, err := one.in.Open(one.name)
	if errors.Is(err, fs.ErrNotExist) {
		if err := one.makeRoom(launch); err != nil {
			return err
		}
		one.file, err = one.in.Create(one.name, 0o600)
		return err
	}
	if err != nil {
		return err
	}
	defer func() { _ = there.Close() }()
	one.file, err = os.OpenFile(disk.Descriptor(there), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	info, err := one.file.Stat()
	if err == nil {
		one.held = info.Size()
	}
	return err
}

func (one *upload) makeRoom(launch string) error {
	names, err := one.in.List(".")
	if err != nil {
		return err
	}
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, prefixOf(launch)) })
	if len(names) < UnfinishedOfLaunch {
		return nil
	}
	written := func(name string) time.Time {
		info, err := one.in.Lstat(name)
		if err != nil {
			return time.Time{}
		}
		return info.ModTime()
	}
	oldest := slices.MinFunc(names, func(a, b string) int { return written(a).Compare(written(b)) })
	return ignoreMissing(one.in.Remove(oldest))
}

// renew gives the pilot time to send more, unless another request has taken over.
func (one *upload) renew() {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	if !one.superseded {
		_ = one.control.SetReadDeadline(time.Now().Add(storage.StallTime))
	}
}

func (one *upload) end() {
	if one.file != nil {
		_ = one.file.Close()
	}
	if one.in != nil {
		_ = one.in.Close()
	}
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	delete(one.of.active, one.name)
	close(one.done)
}

// receive writes what comes from a byte on, and reports whether that is all. An
// error is one of this end: whatever is the matter at the other, what has come
// stays for the next request.
func (one *upload) receive(body io.Reader, q *request) (complete bool, err error) {
	if err := one.file.Truncate(q.from); err != nil {
		return false, err
	}
	summing := newSumming()
	if _, err := io.CopyBuffer(summing, struct{ io.Reader }{one.file}, make([]byte, piece)); err != nil {
		return false, err
	}
	buffer, came := make([]byte, piece), 0
	one.renew()
	for at := q.from; at < q.file.size; {
		n, cut := body.Read(buffer)
		if _, err := one.file.Write(buffer[:n]); err != nil {
			return false, err
		}
		_, _ = summing.Write(buffer[:n])
		at += int64(n)
		if came += n; came >= storage.StallBytes {
			came = 0
			one.renew()
		}
		if cut != nil && at < q.file.size {
			return false, nil
		}
	}
	return true, summing.sums().check(q.file.sums, q.pfn)
}

func (h *Handler) write(w http.ResponseWriter, r *http.Request, launch string, q *request) {
	if r.Method == http.MethodHead { // the pilot was cut
		if err := h.uploads.giveUp(r.Context(), nameOf(launch, q)); err != nil {
			h.fail(w, q, err)
			return
		}
	}
	if h.isThere(w, r, launch, q) {
		return
	}
	if r.Method == http.MethodHead {
		held, err := h.uploads.held(nameOf(launch, q))
		if err != nil {
			h.fail(w, q, err)
			return
		}
		w.Header().Set(heldHeader, strconv.FormatInt(min(held, q.file.size), 10))
		w.WriteHeader(http.StatusNoContent)
		return
	}
	one, err := h.uploads.begin(r.Context(), launch, q, http.NewResponseController(w))
	if err != nil {
		h.fail(w, q, err)
		return
	}
	defer one.end()
	if h.isThere(w, r, launch, q) { // who was superseded had come to its end
		return
	}
	if q.from > one.held {
		w.Header().Set(heldHeader, strconv.FormatInt(one.held, 10))
		http.Error(w, fmt.Sprintf("%d bytes are here", one.held), http.StatusConflict)
		return
	}
	complete, err := one.receive(r.Body, q)
	if err == nil && !complete {
		panic(http.ErrAbortHandler) // who has sent it is gone, or too slow
	}
	if err == nil {
		err = h.name(context.WithoutCancel(r.Context()), one, q)
	}
	if err != nil {
		_ = one.in.Remove(one.name)
		h.fail(w, q, storage.Full(err))
		return
	}
	// Nobody knows how long it took to bring the file to disk.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(storage.StallTime))
	w.WriteHeader(http.StatusCreated)
}

func (h *Handler) name(ctx context.Context, one *upload, q *request) error {
	if err := one.file.Chmod(q.file.mode.Perm()&^0o222 | 0o400); err != nil {
		return err
	}
	if err := h.Element.Put(ctx, disk.Descriptor(one.file), q.pfn); err != nil {
		return err
	}
	return ignoreMissing(one.in.Remove(one.name))
}

// isThere answers a request to write what has its name already, and reports
// whether it has answered.
func (h *Handler) isThere(w http.ResponseWriter, r *http.Request, launch string, q *request) bool {
	body, err := h.Element.Open(r.Context(), q.pfn)
	if errors.Is(err, fs.ErrNotExist) {
		return false
	}
	var there sums
	if err == nil {
		defer body.Close()
		there, err = sumsOf(body)
	}
	if err == nil { // whatever the name holds, what has come is of no use any more
		err = h.uploads.forget(nameOf(launch, q))
	}
	if err == nil && there != q.file.sums {
		err = fmt.Errorf("%w, with other contents", fs.ErrExist)
	}
	if err != nil {
		h.fail(w, q, err)
	}
	return true
}
