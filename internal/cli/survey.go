//go:build linux

package cli

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"fairway/internal/cli/console"
	"fairway/internal/cli/screen"
	"fairway/internal/flow"
	"fairway/internal/flow/workflow"
	"fairway/internal/provision"
	"fairway/internal/server/feed"
	"fairway/internal/site"
	"fairway/internal/taskqueue"
)

// unsurveyed says that inputs are not looked at; empty: they are.
const unsurveyed = ""

type listing = feed.Enumeration

func newListing(folder string) (*listing, error) {
	folder, err := filepath.Abs(folder)
	return feed.NewEnumeration(folder), err
}

func (s *surveyed) survey() {
	for i, glob := range s.input.Globs {
		if !workflow.IsURL(glob) { // a run asks the server
			s.match(glob, s.input.Patterns[i])
		}
	}
	if s.input.URLList != "" {
		s.readList()
	}
	if _, err := feed.ReadCatalog(s.folder, s.input.Catalog); err != nil {
		s.add("name a storage.xml or storage.json, and one of its protocols", "%v", err)
	}
}

func (s *surveyed) match(glob, pattern string) {
	found, err := s.listed.Glob(s.input, glob)
	if err != nil && s.input.Watch {
		s.misfit(err, "")
	} else if err != nil {
		s.add("permit that, or write a pattern that leaves the folder out", "%v", err)
		return
	}
	if folder := feed.OnlyFolders(found); folder != "" && !s.input.Watch && !strings.HasSuffix(glob, "/") {
		s.add(feed.InsteadOfFolder(pattern), "%s is a folder", screen.DisplayPath(folder))
		return
	}
	slices.Sort(found)
	matched := false
	for _, path := range found {
		written := feed.AsWritten(s.folder, glob, path)
		lfn, fits, err := s.input.LFN(written)
		matched = matched || fits || err != nil
		switch {
		case err != nil:
			s.misfit(err, "give the file another name, or the input another `as`")
		case !fits:
		default:
			info, err := os.Stat(path)
			if err == nil && info.IsDir() && !s.input.Watch && !strings.HasSuffix(path, "/") {
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
	if !matched && !s.input.IsOpen() && !s.input.MayBeEmpty {
		why := feed.NothingMatches(s.folder, glob, screen.DisplayPath(inFolder(s.folder, pattern)))
		says, instead, _ := strings.Cut(why.Error(), "; ")
		s.add(cmp.Or(instead, "name files that are there, or watch the folder if they come later"), "%s", says)
	}
}

// misfit counts a file, or tells why it is none.
func (s *surveyed) misfit(err error, instead string) {
	if err == nil {
		s.files++
		return
	}
	s.unfit++
	if s.input.Watch {
		s.left = append(s.left, err.Error())
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
func (s *surveyed) readList() {
	err := feed.Unfit(inFolder(s.folder, s.input.URLList))
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
	found, err := find.List(context.Background(), s.input, true, nil)
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

// checkSites returns what is wrong in a file of sites.
func checkSites(file string, data []byte) error {
	_, err := site.Parse(file, data)
	return err
}

// checkNeeds refuses a workflow with a step that the sites could never run.
func checkNeeds(work *workflow.Workflow, folder string, sites []string) error {
	o := &provision.Options{Sites: sites, Shown: screen.DisplayPath}
	return console.OfSites(provision.CheckNeeds(context.Background(), o, work, folder))
}
