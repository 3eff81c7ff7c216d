package console

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/cli/screen"
)

// StateFolder has the state of a run, in the folder of that.
const StateFolder = ".fairway"

// WorkflowFolder is where the state of a run is: --dir, or this folder or the
// nearest above it that has a state.
func (c *Console) WorkflowFolder() (string, error) {
	if c.Dir != "" {
		return GivenFolder(c.Dir)
	}
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for folder := here; ; folder = filepath.Dir(folder) {
		if HasState(folder) {
			return folder, nil
		}
		if folder == filepath.Dir(folder) {
			return here, nil
		}
	}
}

// GivenFolder takes a workflow file for its folder.
func GivenFolder(path string) (string, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", Fail(ExitUsage, "", "there is no folder %s", path)
	}
	if err != nil {
		return "", err
	}
	if !info.IsDir() {
		path = filepath.Dir(path)
	}
	return filepath.Abs(path)
}

// HasState reports whether a folder has the state of a run, or of a server.
func HasState(folder string) bool {
	info, err := os.Stat(filepath.Join(folder, StateFolder))
	return err == nil && info.IsDir()
}

// DefaultFile is what run and check take when no file is named.
const DefaultFile = "workflow.yaml"

// FileAndFolder finds the workflow file that is meant and the folder for its
// state.
func (c *Console) FileAndFolder(arguments []string) (file, folder string, err error) {
	file = filepath.Join(c.Dir, DefaultFile)
	if len(arguments) > 0 {
		file = arguments[0]
	}
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		file = filepath.Join(file, DefaultFile)
	}
	if _, err := os.Stat(file); err != nil {
		return "", "", Fail(ExitBadFile, "name the workflow file: fairway run FILE", "cannot read the workflow: %w", err)
	}
	folder = c.Dir
	if folder == "" {
		folder = filepath.Dir(file)
	}
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return "", "", err
	}
	folder, err = filepath.Abs(folder)
	return file, folder, err
}

// FolderText names a folder in a sentence.
func FolderText(folder string) string {
	if name := screen.DisplayPath(folder); name != "." {
		return name
	}
	return "this folder"
}
