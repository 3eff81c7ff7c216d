//go:build linux

package survey

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fairway/internal/cli/screen"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/server/feed"
	"fairway/internal/taskqueue"
)

// Unsurveyed says that inputs are not looked at; empty: they are.
const Unsurveyed = ""

// Listing is what was listed of folders, once for all inputs.
type Listing = feed.Enumeration

// NewListing is one of what is in a folder.
func NewListing(folder string) (*Listing, error) {
	folder, err := filepath.Abs(folder)
	return feed.NewEnumeration(folder), err
}

func (s *Input) survey() {
	for i, glob := range s.Declared.Globs {
		if !workflow.IsURL(glob) { // a run asks the server
			s.match(glob, s.Declared.Patterns[i])
		}
	}
	if s.Declared.URLList != "" {
		s.readList()
	}
	if _, err := feed.ReadCatalog(s.folder, s.Declared.Catalog); err != nil {
		s.add("name a storage.xml or storage.json, and one of its protocols", "%v", err)
	}
}

func (s *Input) match(glob, pattern string) {
	found, err := s.listed.Glob(s.Declared, glob)
	if err != nil && s.Declared.Watch {
		s.misfit(err, "")
	} else if err != nil {
		s.add("permit that, or write a pattern that leaves the folder out", "%v", err)
		return
	}
	if folder := feed.OnlyFolders(found); folder != "" && !s.Declared.Watch && !strings.HasSuffix(glob, "/") {
		s.add(feed.InsteadOfFolder(pattern), "%s is a folder", screen.DisplayPath(folder))
		return
	}
	slices.Sort(found)
	matched := false
	for _, path := range found {
		written := feed.AsWritten(s.folder, glob, path)
		lfn, fits, err := s.Declared.LFN(written)
		matched = matched || fits || err != nil
		switch {
		case err != nil:
			s.misfit(err, "give the file another name, or the input another `as`")
		case !fits:
		default:
			info, err := os.Stat(path)
			if err == nil && info.IsDir() && !s.Declared.Watch && !strings.HasSuffix(path, "/") {
				continue // a pattern of files passes over folders
			}
			if err == nil && s.lines {
				s.arrived = append(s.arrived, flow.InputFile{
					ExistingFile: taskqueue.ExistingFile{LFN: lfn, Size: info.Size()}, Path: written,
				})
			}
			unfit, instead := feed.Unfit(path), "put a file there"
			if errors.Is(unfit, fs.ErrPermission) {
				instead = "permit that"
			}
			s.misfit(unfit, instead+", or write a pattern that leaves it out")
		}
	}
	if !matched && !s.Declared.IsOpen() && !s.Declared.MayBeEmpty {
		why := feed.NothingMatches(s.folder, glob, screen.DisplayPath(inFolder(s.folder, pattern)))
		says, instead, _ := strings.Cut(why.Error(), "; ")
		s.add(cmp.Or(instead, "name files that are there, or watch the folder if they come later"), "%s", says)
	}
}

// misfit counts a file, or tells why it is none.
func (s *Input) misfit(err error, instead string) {
	if err == nil {
		s.Files++
		return
	}
	s.unfit++
	if s.Declared.Watch {
		s.Left = append(s.Left, err.Error())
		return
	}
	if s.unfit <= maxUnfit {
		says, better, _ := strings.Cut(err.Error(), "; ")
		s.add(cmp.Or(better, instead), "%s", says)
	}
}

// maxUnfit bounds the files of an input that check refuses by name.
const maxUnfit = 5

// readList looks at a list that is there. A run waits for others.
func (s *Input) readList() {
	err := feed.Unfit(inFolder(s.folder, s.Declared.URLList))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		s.add("name a file with a URL or path a line", "%v", err)
		return
	case !s.lines:
		return
	}
	find := feed.NewFinder(s.folder, nil)
	find.Brief = true
	found, err := find.List(context.Background(), s.Declared, true, nil)
	if err == nil {
		err = found.Err()
	}
	if err != nil {
		s.add("correct the list", "%v", err)
	}
}

func inFolder(folder, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}
