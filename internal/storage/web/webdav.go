package web

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
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
	switch _, err := e.Stat(ctx, pfn); {
	case err == nil:
		return storage.SameAs(ctx, e, file, pfn)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	err = u.moved(ctx)
	if code := status(err); code == http.StatusMethodNotAllowed || code == http.StatusNotImplemented {
		// It cannot move: the file is written under its own name, if there is none or the server does not look.
		err = u.write(ctx, r.url.Path, http.Header{"If-None-Match": {"*"}})
	}
	if errors.Is(err, fs.ErrExist) {
		return storage.SameAs(ctx, e, file, pfn)
	}
	return readOnly(err)
}

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

type upload struct {
	e    *Element
	r    *request
	file *os.File
	size int64
}

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
	return u.arrived(ctx)
}

func (u *upload) remove(ctx context.Context, name string) {
	_ = u.ask(context.WithoutCancel(ctx), u.r.to(http.MethodDelete, name, nil), http.StatusOK, http.StatusNoContent)
}

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

// large is the size, in bytes, from which on a file is not sent before it was asked whether
// there is one, and its folder was made: a server says so when it has got the file.
const large = 1 << 20

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
	if err != nil {
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
	return checksumOf(answer.Header).CheckFile(u.file, u.r.pfn)
}

func (u *upload) send(ctx context.Context, name string, header http.Header) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	put := u.r.to(http.MethodPut, name, header)
	put.size = u.size
	put.body = func() io.ReadCloser {
		return storage.Watched(ctx, cancel, io.NewSectionReader(u.file, 0, u.size), u.r.pfn)
	}
	err := u.ask(withPatience(ctx), put, http.StatusCreated, http.StatusNoContent, http.StatusOK)
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
