package server

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"fairway/internal/disk"
	"fairway/internal/dispatch"
	"fairway/internal/fault"
	"fairway/internal/storage"
)

var (
	beforePublish  = fault.New("publish.before")
	linkedPublish  = fault.New("publish.linked")
	renamedPublish = fault.New("publish.renamed")
)

// unpublishedName is what a file is called in the results folder for the moment
// between its link and its rename. One is enough: files are published one by
// one, by the process that holds the folder's lock.
const unpublishedName = ".fairway-publishing"

// publisher makes committed versions appear under their plain names in the
// results folder. A name changes from one version to the next in one rename;
// repeating a publication, after a crash for instance, changes nothing, so a
// watcher sees each version appear once.
type publisher struct {
	results string
	old     func(lfn string) bool       // what stands under a name is of an earlier run, and may go
	latest  map[string]dispatch.Version // published by this process, by LFN
}

func newPublisher(results string, old func(lfn string) bool) *publisher {
	return &publisher{results: results, old: old, latest: map[string]dispatch.Version{}}
}

// publishAll publishes in order and makes the names durable. It returns how
// many of the first ones are published, and why the next is not.
func (p *publisher) publishAll(batch []dispatch.Publish) (int, error) {
	folders := map[string]bool{}
	done := 0
	var failure error
	for _, b := range batch {
		if failure = p.publish(b, folders); failure != nil {
			failure = fmt.Errorf("publishing %s: %w", b.File.LFN, failure)
			break
		}
		done++
	}
	for folder := range folders {
		if err := disk.Sync(folder); err != nil {
			return 0, fmt.Errorf("publishing into %s: %w", folder, err)
		}
	}
	return done, failure
}

func (p *publisher) publish(b dispatch.Publish, folders map[string]bool) error {
	if newest, ok := p.latest[b.File.LFN]; ok && newest > b.File.Version {
		return nil // fenced: a later version stands there
	}
	if !filepath.IsLocal(b.File.LFN) {
		return errors.New("its name leads out of the results folder")
	}
	source, err := storage.Path(b.PFN)
	if err != nil {
		return err
	}
	target := filepath.Join(p.results, b.File.LFN)
	if same, err := sameFile(source, target); err != nil {
		return err
	} else if !same {
		err := p.place(source, target, folders)
		if blocked(err) {
			if err = p.makeWay(b.File.LFN); err == nil {
				err = p.place(source, target, folders)
			}
		}
		if err != nil {
			return err
		}
	}
	p.latest[b.File.LFN] = b.File.Version
	return nil
}

func (p *publisher) place(source, target string, folders map[string]bool) error {
	if err := makeFolders(filepath.Dir(target), folders); err != nil {
		return err
	}
	if err := beforePublish.Hit(); err != nil {
		return err
	}
	temporary := filepath.Join(p.results, unpublishedName)
	if err := linkOrCopy(source, temporary); err != nil {
		return err
	}
	if err := linkedPublish.Hit(); err != nil {
		return err
	}
	if err := os.Rename(temporary, target); err != nil {
		_ = os.Remove(temporary)
		return err
	}
	folders[filepath.Dir(target)] = true
	return renamedPublish.Hit()
}

// makeFolders makes a folder and those above it, and notes those whose entries
// changed.
func makeFolders(folder string, changed map[string]bool) error {
	err := os.Mkdir(folder, 0o777)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeFolders(filepath.Dir(folder), changed); err != nil {
			return err
		}
		err = os.Mkdir(folder, 0o777)
	}
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return err
	}
	changed[filepath.Dir(folder)] = true
	return nil
}

// sameFile tells whether target is the source already: another link to it or,
// on another file system, a copy, which bears the source's time.
func sameFile(source, target string) (bool, error) {
	from, err := os.Stat(source)
	if err != nil {
		return false, err
	}
	to, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if os.SameFile(from, to) {
		return true, nil
	}
	return to.Mode().IsRegular() && from.Size() == to.Size() && from.ModTime().Equal(to.ModTime()), nil
}

// linkOrCopy makes temporary another name of source, or a copy of it where the
// results are on another file system.
func linkOrCopy(source, temporary string) error {
	if err := os.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := os.Link(source, temporary)
	if err == nil || errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		return err
	}
	if err := copyWithTime(source, temporary); err != nil {
		_ = os.Remove(temporary)
		return err
	}
	return nil
}

func copyWithTime(source, target string) error {
	in, err := os.Open(source)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Chtimes(target, info.ModTime(), info.ModTime())
}
