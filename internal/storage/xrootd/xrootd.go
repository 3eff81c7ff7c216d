// Package xrootd has the storage element of XRootD servers (root://, roots://).
//
// If a server is open to everybody, Fairway speaks its protocol itself, over connections
// that it keeps for the next files. If a server encrypts, or asks who one is, Fairway runs
// the programs xrdcp and xrdfs of Debian's package xrootd-client. No secret stands in their
// arguments, and they find tokens and certificates in the environment as usual.
//
// Guarantees beyond those of [storage.Element]: Put writes under another name in
// the same folder, compares length and checksum, and moves. Both ends are compared
// by the checksum that the server is set up to tell, which is adler32 nearly
// everywhere. XRootD replaces when it moves: of several that put other contents
// under one name in the same instant more than one may be told that it did. The
// names of outputs have the number of an attempt in them, so no two are the same.
// A server may redirect to other XRootD servers; to one of this machine only from this
// machine.
package xrootd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path"
	"strings"

	"fairway/internal/storage"
)

// Element is the element of the schemes root, roots, xroot and xroots. The zero value
// is one that has met no server yet.
type Element struct{ protocol protocol }

var _ storage.Element = (*Element)(nil)

// Close gives idle connections back.
func (e *Element) Close() {
	for _, address := range e.protocol.servers() {
		e.protocol.forget(address)
	}
}

// speaker is how a server is asked. Names are absolute paths on the server of a file.
type speaker interface {
	stat(ctx context.Context, f file, name string) (info storage.Info, folder bool, err error)
	checksum(ctx context.Context, f file, name string) (storage.Checksum, error)
	list(ctx context.Context, f file) ([]storage.Entry, error)
	// read gives the file from a place on, and its size.
	read(ctx context.Context, f file, from int64) (io.ReadCloser, int64, error)
	// write makes a new file, and the missing folders above it.
	write(ctx context.Context, f file, source io.ReaderAt, size int64, name string) error
	makeFolder(ctx context.Context, f file, name string) error
	move(ctx context.Context, f file, from, to string) error
	remove(ctx context.Context, f file, name string) error
	removeFolder(ctx context.Context, f file) error
}

type file struct {
	pfn     string
	server  string // as xrdfs wants it: SCHEME://HOST[:PORT]
	address string // host and port
	path    string // absolute
	by      speaker
}

func parse(pfn string) (file, error) {
	scheme, rest, _ := strings.Cut(pfn, "://")
	host, name, _ := strings.Cut(rest, "/")
	u, err := storage.ParseURL(scheme + "://" + host + "/") // names are as they are
	if err != nil {
		return file{}, err
	}
	if strings.Contains(name, "?") {
		return file{}, fmt.Errorf("%s: a name on an XRootD server may have no '?': rename a file that has one; give tokens "+
			"in BEARER_TOKEN or BEARER_TOKEN_FILE, since others can list what a program is given", storage.Shown(pfn))
	}
	name = path.Clean("/" + name)
	if err := storage.CheckName(name); err != nil {
		return file{}, err
	}
	return file{pfn: pfn, server: u.Scheme + "://" + u.Host, address: addressOf(u), path: name}, nil
}

func addressOf(u *url.URL) string {
	if u.Port() != "" {
		return u.Host
	}
	return net.JoinHostPort(u.Hostname(), defaultPort)
}

func (e *Element) at(ctx context.Context, pfn string) (file, error) {
	f, err := parse(pfn)
	if err != nil {
		return f, err
	}
	f.by = programs{}
	if !strings.HasPrefix(strings.ToLower(f.server), "roots:") &&
		!strings.HasPrefix(strings.ToLower(f.server), "xroots:") {
		open, err := e.protocol.isOpen(ctx, f)
		if err != nil {
			return f, err
		}
		if open {
			f.by = &e.protocol
		}
	}
	return f, nil
}

// url is the whole name of a path on the server. The second slash makes the path
// absolute.
func (f file) url(name string) string { return f.server + "/" + name }

// URL is by what other programs know a file: with root or roots. They take its name as it
// is, and escape nothing.
func URL(pfn string) (string, error) {
	f, err := parse(pfn)
	if err != nil {
		return "", err
	}
	f.server = strings.TrimPrefix(strings.ToLower(f.server), "x")
	return f.url(f.path), nil
}

// Open is part of Element.
func (e *Element) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	f, err := e.at(ctx, pfn)
	if err != nil {
		return nil, err
	}
	sum, err := f.checksum(ctx, f.path)
	if err != nil {
		return nil, err
	}
	body, err := f.read(ctx)
	if err != nil {
		return nil, err
	}
	return storage.Checked(body, sum, pfn), nil
}

// Get is part of Element.
func (e *Element) Get(ctx context.Context, pfn, path string) (int64, error) {
	return storage.Fetch(ctx, e, pfn, path)
}

// read gives the whole file. What is cut goes on, unless the file has changed as far as
// its size tells.
func (f file) read(ctx context.Context) (io.ReadCloser, error) {
	body, size, err := f.by.read(ctx, f, 0)
	if err != nil {
		return nil, err
	}
	return storage.Resumed(ctx, size, body, func(from int64) (io.ReadCloser, error) {
		rest, now, err := f.by.read(ctx, f, from)
		if err == nil && now != size {
			return nil, errors.Join(io.ErrUnexpectedEOF, rest.Close())
		}
		return rest, err
	}), nil
}

// Stat is part of Element.
func (e *Element) Stat(ctx context.Context, pfn string) (storage.Info, error) {
	f, err := e.at(ctx, pfn)
	if err != nil {
		return storage.Info{}, err
	}
	return f.stat(ctx, f.path)
}

func (f file) stat(ctx context.Context, name string) (storage.Info, error) {
	info, folder, err := f.by.stat(ctx, f, name)
	if err == nil && folder {
		err = fmt.Errorf("%s is a folder", f.pfn)
	}
	return info, err
}

// checksum asks the server for one; there is none where it is not set up for that.
func (f file) checksum(ctx context.Context, name string) (storage.Checksum, error) {
	sum, err := f.by.checksum(ctx, f, name)
	var told *Error
	if errors.As(err, &told) && (told.Code == codeUnsupported || told.Code == codeArgument) {
		return storage.Checksum{}, nil
	}
	return sum, err
}

// parseChecksum reads what a server says of a checksum: kind and value.
func parseChecksum(text string) storage.Checksum {
	kind, value, _ := strings.Cut(strings.TrimSpace(text), " ")
	if value == "" {
		return storage.Checksum{}
	}
	return storage.Checksum{Kind: kind, Value: value}
}

// Put is part of Element. Folders of the PFN are made as needed.
func (e *Element) Put(ctx context.Context, local, pfn string) error {
	f, err := e.at(ctx, pfn)
	if err != nil {
		return err
	}
	source, info, err := storage.OpenForPut(local)
	if err != nil {
		return err
	}
	defer source.Close()
	switch _, err := f.stat(ctx, f.path); {
	case err == nil:
		return storage.SameAs(ctx, e, source, pfn)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	unfinished := storage.Unfinished(f.path)
	err = f.by.write(ctx, f, source, info.Size(), unfinished)
	if err == nil {
		err = f.compare(ctx, unfinished, source, info.Size())
	}
	if err == nil {
		err = f.by.move(ctx, f, unfinished, f.path)
	}
	if err != nil {
		_ = f.by.remove(context.WithoutCancel(ctx), f, unfinished)
	}
	if errors.Is(err, fs.ErrExist) {
		return storage.SameAs(ctx, e, source, pfn)
	}
	return err
}

func (f file) compare(ctx context.Context, name string, source *os.File, size int64) error {
	there, err := f.stat(ctx, name)
	if err != nil {
		return err
	}
	if there.Size != size {
		return fmt.Errorf("put %s: %d bytes were sent and the server has %d: %w", f.pfn, size, there.Size,
			io.ErrUnexpectedEOF)
	}
	sum, err := f.checksum(ctx, name)
	if err != nil {
		return err
	}
	return sum.CheckFile(source, f.pfn)
}

// Remove is part of Element.
func (e *Element) Remove(ctx context.Context, pfn string) error {
	f, err := e.at(ctx, pfn)
	if err == nil {
		err = f.by.remove(ctx, f, f.path)
	}
	return unlessGone(err)
}

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// List is part of Element.
func (e *Element) List(ctx context.Context, pfn string) ([]storage.Entry, error) {
	f, err := e.at(ctx, pfn)
	if err != nil {
		return nil, err
	}
	return f.by.list(ctx, f)
}

var _ storage.Renamer = (*Element)(nil)

// Mark is part of Renamer.
func (e *Element) Mark(ctx context.Context, pfn string) (string, error) {
	f, err := e.at(ctx, pfn)
	if err != nil {
		return "", err
	}
	info, err := f.stat(ctx, f.path)
	if err != nil {
		return "", err
	}
	sum, err := f.checksum(ctx, f.path)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%d %d %s%s", info.Size, info.ModTime.Unix(), sum.Kind, sum.Value), nil
}

// Rename is part of Renamer.
func (e *Element) Rename(ctx context.Context, from, to string) error {
	source, err := e.at(ctx, from)
	if err != nil {
		return err
	}
	target, err := parse(to)
	if err != nil {
		return err
	}
	if source.server != target.server {
		return fmt.Errorf("%s: it cannot take the name %s on another server", storage.Shown(from), storage.Shown(to))
	}
	if err := source.by.makeFolder(ctx, source, path.Dir(target.path)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return source.by.move(ctx, source, source.path, target.path)
}

// RemoveFolder is part of Renamer.
func (e *Element) RemoveFolder(ctx context.Context, pfn string) error {
	f, err := e.at(ctx, pfn)
	if err == nil {
		err = f.by.removeFolder(ctx, f)
	}
	return unlessGone(err)
}
