package pilot

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/catalog"
)

// info is what the pilot tells a command besides its environment, and what the
// command tells of its outputs: files beside the sandbox. They stay with the
// slot and are written again only when there is something else to say, since
// making a file costs more than a short job.
type info struct {
	folder                           string
	inputs, outputs, catalog, report infoFile
}

// infoFile is one of these files.
type infoFile struct {
	path  string
	text  string
	state fs.FileInfo // after text was written
}

func (i *info) open() error {
	if i.inputs.path != "" {
		return nil
	}
	if err := os.Mkdir(i.folder, 0o755); err != nil {
		return err
	}
	i.inputs.path = filepath.Join(i.folder, "inputs")
	i.outputs.path = filepath.Join(i.folder, "outputs")
	i.catalog.path = filepath.Join(i.folder, "storage.xml")
	i.report.path = filepath.Join(i.folder, "report")
	return nil
}

func (i *info) close() { _ = removeAll(i.folder) }

// say makes the file hold a text, whatever a command did to it.
func (f *infoFile) say(text string) (err error) {
	now, _ := os.Lstat(f.path)
	same := now != nil && f.state != nil && os.SameFile(now, f.state)
	if same && text == f.text && now.ModTime().Equal(f.state.ModTime()) && now.Size() == f.state.Size() {
		return nil
	}
	if same {
		err = overwrite(f.path, text)
	} else {
		err = errors.Join(os.RemoveAll(f.path), os.WriteFile(f.path, []byte(text), 0o644))
	}
	if err != nil {
		return err
	}
	f.text = text
	f.state, err = os.Lstat(f.path)
	return err
}

// overwrite spares the file system the making of a file.
func overwrite(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte(text), 0)
	return errors.Join(err, f.Truncate(int64(len(text))), f.Close())
}

// inform writes the files that the variables name.
func (in *stageIn) inform() error {
	i := &in.attempt.slot.info
	if err := i.open(); err != nil {
		return err
	}
	var inputs, outputs []string
	for _, f := range in.files {
		inputs = append(inputs, f.path)
	}
	for _, o := range in.attempt.GetOutputs() {
		if path, err := in.attempt.pathOf(o.GetLfn()); err == nil {
			outputs = append(outputs, path)
		}
	}
	xml, err := in.catalog()
	return errors.Join(err, i.catalog.say(xml), i.inputs.say(lines(inputs)), i.outputs.say(lines(outputs)), i.report.say(""))
}

// catalog is the Trivial File Catalog of the inputs.
func (in *stageIn) catalog() (string, error) {
	var cached, stored []catalog.Entry
	for _, f := range in.files {
		if f.cached != nil {
			cached = append(cached, catalog.Entry{LFN: f.LFN, PFN: "file:" + f.cached.Path()})
		}
		if f.pfn != "" {
			stored = append(stored, catalog.Entry{LFN: f.LFN, PFN: f.pfn})
		}
	}
	var b bytes.Buffer
	err := catalog.Write(&b, cached, stored)
	return b.String(), err
}

func lines(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return strings.Join(names, "\n") + "\n"
}
