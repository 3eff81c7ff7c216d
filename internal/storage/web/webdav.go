package web

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"fairway/internal/storage"
)

// Put is part of Element. Folders of the PFN are made as needed.
func (e *Element) Put(ctx context.Context, local, pfn string) error {
	file, info, err := storage.OpenForPut(local)
	if err != nil {
		return err
	}
	defer file.Close()
	r, err := newRequest(http.MethodPut, pfn, nil)
	if err != nil {
		return err
	}
	u := &upload{e: e, r: r, file: file, size: info.Size()}
	seen := e.host(r.url)
	direct := u.size < large && seen.hides != "" && strings.HasPrefix(r.url.Path, seen.hides) && storage.HasOwnName(ctx)
	u.brief = direct || u.size < large && seen.neverReplaces
	if !u.brief {
		switch _, err := e.Stat(ctx, pfn); {
		case err == nil:
			return storage.SameAs(ctx, e, file, pfn)
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	if direct {
		if err = u.direct(ctx); err != nil && ctx.Err() == nil && !errors.Is(err, fs.ErrExist) {
			// What was sent may still be on its way: the next try must not stand where it arrives.
			e.see(r.url, func(h *host) { h.hides, h.cuts, h.failed = "", nil, true })
		}
	} else if err = u.moved(ctx); !u.brief && (status(err) == http.StatusMethodNotAllowed ||
		status(err) == http.StatusNotImplemented) {
		err = u.direct(ctx)
	}
	if errors.Is(err, fs.ErrExist) {
		return storage.SameAs(ctx, e, file, pfn)
	}
	return readOnly(err)
}

// readOnly says of a server that it takes no files.
func readOnly(err error) error {
	if status(err) == http.StatusMethodNotAllowed || status(err) == http.StatusNotImplemented {
		return fmt.Errorf("%w: %w", storage.ErrReadOnly, err)
	}
	return err
}

func status(err error) int {
	if answer, ok := errors.AsType[*storage.StatusError](err); ok {
		return answer.Status
	}
	return 0
}

// upload is one try to store a file.
type upload struct {
	e    *Element
	r    *request
	file *os.File
	size int64
	// brief leaves out to ask whether there is such a file, since the server moves none
	// onto another or the name is that of this file alone, and what it has got, since it tells
	// no checksum.
	brief bool
}

// moved writes the file under another name and moves it.
func (u *upload) moved(ctx context.Context) error {
	unfinished := storage.Unfinished(u.r.url.Path)
	err := u.write(ctx, unfinished, nil)
	if err == nil {
		err = u.move(ctx, unfinished, u.r.url.Path)
	}
	if err != nil {
		u.remove(ctx, unfinished)
		return err
	}
	if u.size < large {
		u.learn(ctx)
	}
	return u.arrived(ctx)
}

func (u *upload) remove(ctx context.Context, name string) {
	_ = u.ask(context.WithoutCancel(ctx), u.r.to(http.MethodDelete, name, nil), http.StatusOK, http.StatusNoContent)
}

// seenEnough is after how many small files it is worth to find out whether a server needs
// fewer requests for one, and how many more are stored before what was cut is looked for.
const seenEnough = 16

// learn counts a small file that was stored, and after some finds out what the server needs. One
// that tells checksums is asked for that of each file.
func (u *upload) learn(ctx context.Context) {
	var seen host
	u.e.see(u.r.url, func(h *host) { h.stored = min(h.stored+1, 2*seenEnough+1); seen = *h })
	switch {
	case seen.sums:
	case seen.stored == seenEnough:
		keeps, cuts := u.refusesToReplace(ctx), u.cuts(ctx)
		u.e.see(u.r.url, func(h *host) { h.neverReplaces, h.cuts, h.stored = keeps && !h.sums, cuts, seenEnough })
	case seen.stored == 2*seenEnough && len(seen.cuts) > 0:
		hides := true
		for _, cut := range seen.cuts {
			if !u.hides(ctx, cut) {
				hides = false
				u.remove(ctx, cut)
			}
		}
		u.e.see(u.r.url, func(h *host) {
			if hides && !h.sums && !h.failed {
				h.hides = storeOf(seen.cuts[0])
			}
		})
	}
}

// storeOf is how the names in the store of a file begin; in its folder, if that is in no store.
// Other folders of a host may be those of another server.
func storeOf(name string) string {
	folders := strings.SplitAfter(name[:strings.LastIndexByte(name, '/')+1], "/")
	for i, folder := range folders {
		if storage.IsStore(strings.TrimSuffix(folder, "/")) {
			folders = folders[:i+1]
			break
		}
	}
	return strings.Join(folders, "")
}

// refusesToReplace reports, after a trial with two empty files, whether the server refuses to
// move one onto the other, as RFC 4918 wants it: some move it all the same (XRootD).
func (u *upload) refusesToReplace(ctx context.Context) bool {
	empty := func(name string) error {
		put := u.r.to(http.MethodPut, name, nil)
		put.body = func() io.ReadCloser { return http.NoBody }
		return u.ask(ctx, put, http.StatusCreated)
	}
	from, to := storage.Unfinished(u.r.url.Path), storage.Unfinished(u.r.url.Path)
	defer u.remove(ctx, from)
	defer u.remove(ctx, to)
	return empty(from) == nil && empty(to) == nil && status(u.move(ctx, from, to)) == http.StatusPreconditionFailed
}

// hides reports whether there is no such file for the server: whether a folder can have the name,
// and nothing stands there when the folder is removed. rclone says that there is no file while it
// comes, but makes no folder in its place.
func (u *upload) hides(ctx context.Context, name string) bool {
	return u.ask(ctx, u.r.to("MKCOL", name+"/", nil), http.StatusCreated) == nil &&
		u.ask(ctx, u.r.to(http.MethodDelete, name+"/", nil), http.StatusOK, http.StatusNoContent) == nil &&
		errors.Is(u.ask(ctx, u.r.to(http.MethodHead, name, nil), http.StatusOK), fs.ErrNotExist)
}

// probes is how often in a row is looked for what decides about one request: behind a host may
// be several servers. Up to four that are asked in turns are all met, whether they change with
// each file, with each connection (a probe breaks its own) or with each request (a cut takes 13).
const probes = 4

// cuts are the names of files of which the servers of a host got a part, and showed nothing. There
// are none if a server did, or may be behind a proxy that gathers what it gets.
func (u *upload) cuts(ctx context.Context) (names []string) {
	for range probes {
		if !u.refusesAtOnce(ctx) {
			return nil
		}
	}
	for range probes {
		name := u.cut(ctx)
		if name == "" {
			for _, name := range names {
				u.remove(ctx, name)
			}
			return nil
		}
		names = append(names, name)
	}
	return names
}

// refusesAtOnce reports whether the one that takes files is asked without a detour: whether a
// file that can have no such name is refused (RFC 9110, 409) before anything of it is wanted. A
// proxy that gathers files wants all of it first. It could pass a file on when that was sent again.
func (u *upload) refusesAtOnce(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, continueTime)
	defer cancel()
	wanted := false
	asked := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { wanted = true }})
	name := storage.Unfinished(u.r.url.Path)
	put := u.r.to(http.MethodPut, name+"/", http.Header{"Expect": {"100-continue"}})
	put.size = 1
	put.body = func() io.ReadCloser { return io.NopCloser(io.LimitReader(zeros{}, 1)) }
	answer, err := u.e.do(asked, put, http.StatusConflict)
	if err != nil {
		u.remove(ctx, name) // rclone takes it
		return false
	}
	discard(answer)
	return !wanted && answer.Header.Get("Via") == ""
}

// cut sends a part of a file, breaks off if the server shows nothing of it meanwhile, and then
// returns its name. It is to be looked for again when the server has noticed that no more comes.
// The server must say that it reads the file, else it may have had no time to show it.
func (u *upload) cut(ctx context.Context) string {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	alarm := time.AfterFunc(continueTime, cancel)
	defer alarm.Stop()
	asked := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{Got100Continue: func() { alarm.Stop() }})
	name := storage.Unfinished(u.r.url.Path)
	put := u.r.to(http.MethodPut, name, http.Header{"Expect": {"100-continue"}})
	put.size = large
	broke := errors.New("nothing of it is shown")
	put.body = func() io.ReadCloser {
		first, rest := io.LimitReader(zeros{}, large/2), io.LimitReader(zeros{}, large/2)
		return io.NopCloser(io.MultiReader(first, between(func() error {
			for range looks {
				if !u.hides(ctx, name) {
					return io.EOF
				}
			}
			return broke
		}), rest))
	}
	if errors.Is(u.ask(asked, put, http.StatusCreated), broke) {
		return name
	}
	u.remove(ctx, name)
	return ""
}

const (
	// looks is how often a part is looked for while it comes: the first time, it may be on its
	// way.
	looks = 4
	// continueTime is how long a server has to say that it reads a file. It is below the time
	// after which the file would be sent all the same.
	continueTime = HeaderTimeout / 6
)

// zeros is a file of zeros that has no end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// between is called between two parts of a body, which goes on after io.EOF and breaks off after
// another error.
type between func() error

func (b between) Read([]byte) (int, error) { return 0, b() }

// move gives a file another name, unless there is one of that name.
func (u *upload) move(ctx context.Context, from, to string) error {
	target := *u.r.url
	target.Path = to
	return u.ask(ctx, u.r.to("MOVE", from, http.Header{"Destination": {destination(&target)}, "Overwrite": {"F"}}),
		http.StatusCreated, http.StatusNoContent, http.StatusOK)
}

// destination is a URL without a query, with nothing escaped that need not be.
func destination(u *url.URL) string { return u.Scheme + "://" + u.Host + escapePath(u.Path) }

// escapePath escapes what a path of a URL may not have (RFC 3986, pchar). net/url
// escapes more.
func escapePath(name string) string {
	var escaped strings.Builder
	for _, b := range []byte(name) {
		if b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' ||
			strings.IndexByte("-._~!$&'()*+,;=:@/", b) >= 0 {
			escaped.WriteByte(b)
		} else {
			fmt.Fprintf(&escaped, "%%%02X", b)
		}
	}
	return escaped.String()
}

// arrived looks whether a file that was moved stands under its name: XRootD takes a
// destination as it is written, with what is escaped in it.
func (u *upload) arrived(ctx context.Context) error {
	escaped := escapePath(u.r.url.Path)
	if escaped == u.r.url.Path {
		return nil
	}
	err := u.ask(ctx, u.r.to(http.MethodHead, u.r.url.Path, nil), http.StatusOK)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = u.ask(context.WithoutCancel(ctx), u.r.to(http.MethodDelete, escaped, nil), http.StatusOK, http.StatusNoContent)
	return fmt.Errorf("put %s: this server gives no file a name with characters that a URL must escape: name it "+
		"otherwise, or use another protocol of the server", storage.Shown(u.r.pfn))
}

// direct writes the file under its own name, if there is none or the server does not look.
func (u *upload) direct(ctx context.Context) error {
	return u.write(ctx, u.r.url.Path, http.Header{"If-None-Match": {"*"}})
}

// large is the size, in bytes, from which on a file is not sent before it was asked whether
// there is one, and its folder was made: a server says so when it has got the file.
const large = 1 << 20

// write stores the file and looks whether the server has it.
func (u *upload) write(ctx context.Context, name string, header http.Header) error {
	if u.size >= large {
		_ = u.makeFolders(ctx, path.Dir(name)) // else it may still be that the server makes it
	}
	err := u.send(ctx, name, header)
	switch status(err) { // the last is nginx's
	case http.StatusConflict, http.StatusNotFound, http.StatusInternalServerError:
		if u.makeFolders(ctx, path.Dir(name)) != nil {
			return err
		}
		err = u.send(ctx, name, header)
	}
	if err != nil || u.brief {
		return err
	}
	answer, err := u.e.do(withPatience(ctx), u.r.to(http.MethodHead, name, wantDigest()), http.StatusOK)
	if err != nil {
		return err
	}
	discard(answer)
	if answer.ContentLength >= 0 && answer.ContentLength != u.size {
		return fmt.Errorf("put %s: %d bytes were sent and the server has %d: %w", storage.Shown(u.r.pfn), u.size,
			answer.ContentLength, io.ErrUnexpectedEOF)
	}
	sum := checksumOf(answer.Header)
	if sum.Hash() != nil {
		u.e.see(u.r.url, func(h *host) { h.sums, h.neverReplaces, h.hides = true, false, "" })
	}
	return sum.CheckFile(u.file, u.r.pfn)
}

func (u *upload) send(ctx context.Context, name string, header http.Header) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	put := u.r.to(http.MethodPut, name, header)
	put.size = u.size
	put.body = func() io.ReadCloser {
		return storage.Watched(ctx, cancel, io.NewSectionReader(u.file, 0, u.size), u.r.pfn)
	}
	if !u.brief {
		ctx = withPatience(ctx)
	}
	err := u.ask(ctx, put, http.StatusCreated, http.StatusNoContent, http.StatusOK)
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	return err
}

func (u *upload) ask(ctx context.Context, r *request, wanted ...int) error {
	answer, err := u.e.do(ctx, r, wanted...)
	if err == nil {
		discard(answer)
	}
	return err
}

// makeFolders makes a folder and what is missing above it.
func (u *upload) makeFolders(ctx context.Context, folder string) error {
	if folder == "/" || folder == "." {
		return nil
	}
	make := u.r.to("MKCOL", folder+"/", nil)
	wanted := []int{http.StatusCreated, http.StatusOK, http.StatusMethodNotAllowed} // the last: there is one
	err := u.ask(ctx, make, wanted...)
	if code := status(err); code != http.StatusConflict && code != http.StatusNotFound {
		return err
	}
	if err := u.makeFolders(ctx, path.Dir(folder)); err != nil {
		return err
	}
	return u.ask(ctx, make, append(wanted, http.StatusConflict)...) // somebody else may have made it
}

// Remove is part of Element.
func (e *Element) Remove(ctx context.Context, pfn string) error {
	r, err := newRequest(http.MethodDelete, pfn, nil)
	if err != nil {
		return err
	}
	answer, err := e.do(ctx, r, http.StatusOK, http.StatusNoContent, http.StatusAccepted, http.StatusNotFound)
	if err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	discard(answer)
	return nil
}

// List is part of Element. Only servers with WebDAV list folders.
func (e *Element) List(ctx context.Context, pfn string) ([]storage.Entry, error) {
	r, err := newRequest("PROPFIND", strings.TrimSuffix(pfn, "/")+"/", http.Header{"Depth": {"1"}})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	answer, err := e.do(ctx, r, http.StatusMultiStatus)
	if code := status(err); code != 0 && code < 500 && code != http.StatusNotFound && !denied(code) &&
		code != http.StatusTooManyRequests || code == http.StatusNotImplemented {
		return nil, fmt.Errorf("%s: %w: name the files in a url_list", storage.Shown(pfn), storage.ErrNoList)
	}
	if err != nil {
		return nil, err
	}
	body := storage.Steady(ctx, cancel, answer.Body, pfn)
	defer body.Close()
	defer time.AfterFunc(storage.ListTime, func() {
		cancel(&storage.ListingError{
			PFN: storage.Shown(pfn), Why: fmt.Sprintf("it has not ended after %v (ListTime)", storage.ListTime),
		})
	}).Stop()
	entries, err := readListing(body, r.url.Path, storage.MaxEntries, storage.MaxListing)
	switch {
	case err == nil:
		return entries, nil
	case storage.Temporary(err) || context.Cause(ctx) != nil:
		return nil, fmt.Errorf("list %s: %w", storage.Shown(pfn), err)
	}
	return nil, &storage.ListingError{PFN: storage.Shown(pfn), Why: err.Error()}
}

// readListing reads the answer to PROPFIND: the names beneath a folder. The folder itself, and
// what a server tells of other places, is left out. More names or bytes than most are an error.
func readListing(body io.Reader, folder string, most int, mostBytes int64) (entries []storage.Entry, err error) {
	const dav = "DAV:"
	folder = path.Clean(folder)
	var href string
	isFolder := false
	names := func(path []xml.Name, names ...string) bool {
		return slices.EqualFunc(path, names, func(at xml.Name, name string) bool {
			return at.Space == dav && at.Local == name
		})
	}
	err = storage.ScanXML(body, mostBytes, func(at []xml.Name, text string) error {
		switch {
		case names(at, "multistatus", "response", "href"):
			href = text
		case names(at, "multistatus", "response", "propstat", "prop", "resourcetype", "collection"):
			isFolder = true
		case names(at, "multistatus", "response"):
			if name, ok := nameIn(folder, href); ok {
				entries = append(entries, storage.Entry{Name: name, Folder: isFolder})
			}
			if href, isFolder = "", false; len(entries) > most {
				return fmt.Errorf("more than %d names (MaxEntries)", most)
			}
		}
		return nil
	})
	return entries, err
}

// nameIn is the name of what a server tells of, if that stands in a folder.
func nameIn(folder, href string) (name string, ok bool) {
	u, err := url.Parse(href)
	if err != nil {
		return "", false
	}
	at := strings.TrimSuffix(u.Path, "/")
	if !storage.IsElement(path.Base(at)) || path.Dir(at) != folder {
		return "", false
	}
	return url.PathEscape(path.Base(at)), true
}

var _ storage.Renamer = (*Element)(nil)

// Mark is part of Renamer: what the server tells of the contents, by which it would
// also answer whether they have changed.
func (e *Element) Mark(ctx context.Context, pfn string) (string, error) {
	r, err := newRequest(http.MethodHead, pfn, wantDigest())
	if err != nil {
		return "", err
	}
	answer, err := e.do(withPatience(ctx), r, http.StatusOK)
	if err != nil {
		return "", err
	}
	discard(answer)
	sum := checksumOf(answer.Header)
	return fmt.Sprintf("%d %s %s %s%s", answer.ContentLength, answer.Header.Get("ETag"),
		answer.Header.Get("Last-Modified"), sum.Kind, sum.Value), nil
}

// Rename is part of Renamer.
func (e *Element) Rename(ctx context.Context, from, to string) error {
	source, err := newRequest("MOVE", from, nil)
	if err != nil {
		return err
	}
	target, err := newRequest("MOVE", to, nil)
	if err != nil {
		return err
	}
	u := &upload{e: e, r: target}
	source.header = http.Header{"Destination": {destination(target.url)}, "Overwrite": {"T"}}
	err = u.ask(ctx, source, http.StatusCreated, http.StatusNoContent, http.StatusOK)
	if code := status(err); code == http.StatusConflict || code == http.StatusNotFound ||
		code == http.StatusInternalServerError {
		if u.makeFolders(ctx, path.Dir(target.url.Path)) == nil {
			err = u.ask(ctx, source, http.StatusCreated, http.StatusNoContent, http.StatusOK)
		}
	}
	if err != nil {
		return readOnly(err)
	}
	return u.arrived(ctx)
}

// RemoveFolder is part of Renamer.
func (e *Element) RemoveFolder(ctx context.Context, pfn string) error {
	return e.Remove(ctx, strings.TrimSuffix(pfn, "/")+"/")
}
