package cli

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

const stateFolder = ".fairway"

// workflowFolder is where the state of a run is: --dir, or this folder or the
// nearest above it that has a state.
func (c *console) workflowFolder() (string, error) {
	if c.dir != "" {
		return givenFolder(c.dir)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for folder := here; ; folder = filepath.Dir(folder) {
		if hasState(folder) {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return here, nil
		}
	}
}

// givenFolder takes a workflow file for its folder.
func givenFolder(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fail(exitUsage, "", "there is no folder %s", path)
	}
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		path = filepath.Dir(path)
	}
	return filepath.Abs(path)
}

func hasState(folder string) bool {
	info, err := os.Stat(filepath.Join(folder, stateFolder))
	return err == nil && info.IsDir()
}

// defaultFile is what run and check take when no file is named.
const defaultFile = "workflow.yaml"

// fileAndFolder finds the workflow file that is meant and the folder for its
// state.
func (c *console) fileAndFolder(arguments []string) (file, folder string, err error) {
	file = filepath.Join(c.dir, defaultFile)
	if len(arguments) > 0 {
		file = arguments[0]
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		file = filepath.Join(file, defaultFile)
	}
	if _, err := os.Stat(file); err != nil {
		return "", "", fail(exitBadFile, "name the workflow file: fairway run FILE", "cannot read the workflow: %w", err)
	}
	folder = c.dir
	if folder == "" {
		folder = filepath.Dir(file)
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", "", err
	}
	if folder, err = filepath.Abs(folder); err == nil && !utf8.ValidString(folder) {
		err = fail(exitUsage, "rename it, or choose a folder for the state with --dir",
			"the name of the folder %q is not UTF-8, so it cannot be recorded", folder)
	}
	return file, folder, err
}

// folderText names a folder in a sentence.
func folderText(folder string) string {
	if name := displayPath(folder); name != "." {
		return name
	}
	return "this folder"
}

// displayPath is the shorter of a path and the way to it from here.
func displayPath(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	relative, err := filepath.Rel(here, path)
	if err != nil || len(relative) >= len(path) || strings.HasPrefix(relative, "../..") {
		return path
	}
	return relative
}
