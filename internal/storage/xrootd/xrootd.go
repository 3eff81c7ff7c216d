// Package xrootd has the storage element of XRootD servers (root://, roots://).
// It runs xrdcp and xrdfs, of Debian's package xrootd-client, as processes of
// their own: no secret stands in their arguments, they find tokens and
// certificates in the environment as they do for anybody.
//
// Guarantees beyond those of [storage.Element]: Put writes under another name in
// the same folder, compares length and checksum, and moves. Both ends are compared
// by the checksum that the server is set up to tell, which is adler32 nearly
// everywhere. XRootD replaces when it moves: of several that put other contents
// under one name in the same instant more than one may be told that it did. The
// names of outputs have the number of an attempt in them, so no two are the same.
package xrootd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"

	"fairway/internal/storage"
)

// Element is the element of the schemes root, roots, xroot and xroots.
type Element struct{}

var _ storage.Element = Element{}

// file is what a PFN names.
type file struct {
	pfn    string
	server string // as xrdfs wants it: SCHEME://HOST[:PORT]
	path   string // absolute
}

func parse(pfn string) (file, error) {
	u, err := storage.ParseURL(pfn)
	if err != nil {
		return file{}, err
	}
	if u.RawQuery != "" || u.ForceQuery {
		return file{}, fmt.Errorf("%s: leave out what begins with '?': it would be shown in lists of processes; give tokens in BEARER_TOKEN or BEARER_TOKEN_FILE", storage.Shown(pfn))
	}
	_, rest, _ := strings.Cut(pfn, "://")
	_, name, _ := strings.Cut(rest, "/")
	name = path.Clean("/" + name)
	if err := storage.CheckName(name); err != nil {
		return file{}, err
	}
	return file{pfn, u.Scheme + "://" + u.Host, name}, nil
}

// url is the whole name of a path on the server. The second slash makes the path
// absolute.
func (f file) url(name string) string { return f.server + "/" + name }

// Open is part of Element.
func (Element) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	f, err := parse(pfn)
	if err != nil {
		return nil, err
	}
	if _, err := f.stat(ctx, f.path); err != nil {
		return nil, err
	}
	return f.read(ctx)
}

// Get is part of Element.
func (Element) Get(ctx context.Context, pfn, path string) (int64, error) {
	f, err := parse(pfn)
	if err != nil {
		return 0, err
	}
	before, err := f.stat(ctx, f.path)
	if err != nil {
		return 0, err
	}
	sum, err := f.checksum(ctx, f.path)
	if err != nil {
		return 0, err
	}
	body, err := f.read(ctx)
	if err != nil {
		return 0, err
	}
	defer body.Close()
	return storage.Receive(path, &exactly{body, before.Size}, sum, pfn)
}

// exactly is a body that must have so many bytes.
type exactly struct {
	io.Reader
	left int64
}

func (e *exactly) Read(p []byte) (int, error) {
	n, err := e.Reader.Read(p)
	e.left -= int64(n)
	if e.left < 0 || errors.Is(err, io.EOF) && e.left != 0 {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}

// Stat is part of Element.
func (Element) Stat(ctx context.Context, pfn string) (storage.Info, error) {
	f, err := parse(pfn)
	if err != nil {
		return storage.Info{}, err
	}
	return f.stat(ctx, f.path)
}

func (f file) stat(ctx context.Context, name string) (storage.Info, error) {
	text, err := f.xrdfs(ctx, "stat", name)
	if err != nil {
		return storage.Info{}, err
	}
	info, folder, err := parseStat(text)
	if err != nil {
		return info, fmt.Errorf("%s: %w", f.pfn, err)
	}
	if folder {
		return info, fmt.Errorf("%s is a folder", f.pfn)
	}
	return info, nil
}

// parseStat reads what xrdfs stat prints: a line for each property.
func parseStat(text string) (info storage.Info, folder bool, err error) {
	info.Size = -1
	for line := range strings.SplitSeq(text, "\n") {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Size":
			info.Size, err = strconv.ParseInt(value, 10, 64)
		case "MTime":
			info.ModTime, err = time.Parse(time.DateTime, value)
		case "Flags":
			folder = strings.Contains(value, "IsDir")
		}
		if err != nil {
			return info, folder, fmt.Errorf("xrdfs stat said %q: %w", line, err)
		}
	}
	if info.Size < 0 {
		return info, folder, fmt.Errorf("xrdfs stat said no size")
	}
	return info, folder, nil
}

// checksum asks the server for one; there is none where it is not set up for that.
func (f file) checksum(ctx context.Context, name string) (storage.Checksum, error) {
	text, err := f.xrdfs(ctx, "query", "checksum", name)
	var told *Error
	if errors.As(err, &told) && (told.Code == codeUnsupported || told.Code == codeArgument) {
		return storage.Checksum{}, nil
	}
	return parseChecksum(text), err
}

// parseChecksum reads what xrdfs query checksum prints: kind and value.
func parseChecksum(text string) storage.Checksum {
	kind, value, _ := strings.Cut(strings.TrimSpace(text), " ")
	if value == "" {
		return storage.Checksum{}
	}
	return storage.Checksum{Kind: kind, Value: value}
}

// Put is part of Element. Folders of the PFN are made as needed.
func (e Element) Put(ctx context.Context, local, pfn string) error {
	f, err := parse(pfn)
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
	err = f.write(ctx, io.NewSectionReader(source, 0, info.Size()), unfinished)
	if err == nil {
		err = f.compare(ctx, unfinished, info.Size(), func(sum storage.Checksum) error { return sum.CheckFile(source, pfn) })
	}
	if err == nil {
		_, err = f.xrdfs(ctx, "mv", unfinished, f.path)
	}
	if err != nil {
		_, _ = f.xrdfs(context.WithoutCancel(ctx), "rm", unfinished)
	}
	if errors.Is(err, fs.ErrExist) {
		return storage.SameAs(ctx, e, source, pfn)
	}
	return err
}

// compare looks whether the server has what was sent.
func (f file) compare(ctx context.Context, name string, size int64, check func(storage.Checksum) error) error {
	there, err := f.stat(ctx, name)
	if err != nil {
		return err
	}
	if there.Size != size {
		return fmt.Errorf("put %s: %d bytes were sent and the server has %d: %w", f.pfn, size, there.Size, io.ErrUnexpectedEOF)
	}
	sum, err := f.checksum(ctx, name)
	if err != nil {
		return err
	}
	return check(sum)
}

// Remove is part of Element.
func (Element) Remove(ctx context.Context, pfn string) error {
	f, err := parse(pfn)
	if err != nil {
		return err
	}
	if _, err = f.xrdfs(ctx, "rm", f.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// List is part of Element.
func (Element) List(ctx context.Context, pfn string) ([]storage.Entry, error) {
	f, err := parse(pfn)
	if err != nil {
		return nil, err
	}
	text, err := f.xrdfs(ctx, "ls", "-l", f.path)
	if err != nil {
		return nil, err
	}
	return parseList(text, f.path), nil
}

// parseList reads what xrdfs ls -l prints: permissions, sizes and times, and at
// the end the absolute path, which may have spaces.
func parseList(text, folder string) []storage.Entry {
	var entries []storage.Entry
	before := " " + strings.TrimSuffix(folder, "/") + "/"
	for line := range strings.SplitSeq(text, "\n") {
		_, name, found := strings.Cut(line, before)
		if found && storage.IsElement(name) {
			entries = append(entries, storage.Entry{Name: name, Folder: strings.HasPrefix(line, "d")})
		}
	}
	return entries
}

var _ storage.Renamer = Element{}

// Mark is part of Renamer.
func (Element) Mark(ctx context.Context, pfn string) (string, error) {
	f, err := parse(pfn)
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
func (Element) Rename(ctx context.Context, from, to string) error {
	source, err := parse(from)
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
	if _, err := target.xrdfs(ctx, "mkdir", "-p", path.Dir(target.path)); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	_, err = source.xrdfs(ctx, "mv", source.path, target.path)
	return err
}

// RemoveFolder is part of Renamer.
func (Element) RemoveFolder(ctx context.Context, pfn string) error {
	f, err := parse(pfn)
	if err != nil {
		return err
	}
	if _, err = f.xrdfs(ctx, "rmdir", f.path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
