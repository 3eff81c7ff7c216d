package stage

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"fairway/internal/beneath"
	"fairway/internal/catalog"
	"fairway/internal/logical"
)

// The environment of a command names files that tell it more.
const (
	// They list paths relative to the sandbox, one a line; of streamed inputs the URLs.
	InputsVariable  = "FAIRWAY_INPUTS_FILE"
	OutputsVariable = "FAIRWAY_OUTPUTS_FILE"
	// CatalogVariable is a Trivial File Catalog of the inputs, cached ones first;
	// empty for a command without inputs and outputs.
	CatalogVariable = "FAIRWAY_CATALOG"
	// ReportVariable is a file to which the command may write lines
	// "records PATH N": the number of records in an output.
	ReportVariable = "FAIRWAY_REPORT"
)

// info is what the pilot tells a command besides its environment, the text of some
// commands, and what the command tells of its outputs: files beside the sandbox. They
// stay with the slot and are written again only when there is something else to say,
// since making a file costs more than a short job. Nobody but the user may read them: URLs
// in them may permit to read files.
type info struct {
	above                                    *beneath.Folder // the pilot's folder
	folder                                   string
	dir                                      *beneath.Folder // the same, nil before there is one
	inputs, outputs, catalog, report, script infoFile
}

type infoFile struct {
	dir   *beneath.Folder // of all of them
	name  string
	path  string
	file  *os.File // nil before there is one
	text  string
	state fileState // after text was written
}

type fileState struct {
	device, inode uint64
	size          int64
	modified      unix.Timespec
}

func stateOf(st unix.Stat_t) fileState { return fileState{st.Dev, st.Ino, st.Size, st.Mtim} }

func stateOfOpen(f *os.File) (fileState, error) {
	var st unix.Stat_t
	err := unix.Fstat(int(f.Fd()), &st)
	return stateOf(st), err
}

// open makes the folder, again if a command has replaced it.
func (i *info) open() (err error) {
	if i.dir != nil && i.dir.Is(i.folder) {
		return nil
	}
	i.close()
	name := filepath.Base(i.folder)
	if err := i.above.Mkdir(name, 0o755); err != nil {
		return err
	}
	if i.dir, err = i.above.Sub(name); err != nil {
		return err
	}
	for name, f := range map[string]*infoFile{
		"inputs":      &i.inputs,
		"outputs":     &i.outputs,
		"storage.xml": &i.catalog,
		"report":      &i.report,
		"script":      &i.script,
	} {
		*f = infoFile{dir: i.dir, name: name, path: filepath.Join(i.folder, name)}
	}
	return nil
}

func (i *info) close() {
	for _, f := range []*infoFile{&i.inputs, &i.outputs, &i.catalog, &i.report, &i.script} {
		f.close()
	}
	if i.dir != nil {
		_ = i.dir.Close()
		i.dir = nil
	}
	_ = i.above.Clear(filepath.Base(i.folder))
}

func (f *infoFile) close() {
	if f.file != nil {
		_ = f.file.Close()
		f.file = nil
	}
}

// untouched reports whether the file is as say has left it.
func (f *infoFile) untouched() bool {
	if f.file == nil {
		return false
	}
	st, err := f.dir.Status(f.name)
	return err == nil && stateOf(st) == f.state
}

func (f *infoFile) say(text string) error {
	untouched := f.untouched()
	if untouched && text == f.text {
		return nil
	}
	if !untouched {
		if err := f.replace(); err != nil {
			return err
		}
	}
	if _, err := f.file.WriteAt([]byte(text), 0); err != nil {
		return err
	}
	if len(text) < len(f.text) {
		if err := f.file.Truncate(int64(len(text))); err != nil {
			return err
		}
	}
	f.text = text
	var err error
	f.state, err = stateOfOpen(f.file)
	return err
}

func (f *infoFile) replace() error {
	f.close()
	f.text = ""
	if err := f.dir.Clear(f.name); err != nil {
		return err
	}
	var err error
	f.file, err = f.dir.Create(f.name, 0o600)
	return err
}

// inform writes the files that the variables name. A command without files gets its own too, and none of the
// system such as /dev/null: a job of root that put another file in the place of one would break the machine.
func (in *Inputs) inform() error {
	i := &in.attempt.Slot.info
	if err := i.open(); err != nil {
		return err
	}
	if err := i.report.say(""); err != nil || !in.hasFiles() {
		return errors.Join(err, i.inputs.say(""), i.outputs.say(""))
	}
	var inputs, outputs []string
	for _, f := range in.files {
		inputs = append(inputs, f.shown())
	}
	for _, o := range in.attempt.GetOutputs() {
		if path, err := in.attempt.PathOf(o.GetLfn()); err == nil {
			if o.GetPattern() {
				path = logical.Unescape(path)
			}
			outputs = append(outputs, path)
		}
	}
	xml, err := in.catalog()
	return errors.Join(err, i.catalog.say(xml), i.inputs.say(lines(inputs)), i.outputs.say(lines(outputs)))
}

// Environment is the part of the environment that names the files.
func (in *Inputs) Environment() []string {
	i, entries := &in.attempt.Slot.info, ""
	if in.hasFiles() {
		entries = i.catalog.path
	}
	return []string{InputsVariable + "=" + i.inputs.path, OutputsVariable + "=" + i.outputs.path,
		CatalogVariable + "=" + entries, ReportVariable + "=" + i.report.path}
}

func (in *Inputs) hasFiles() bool { return len(in.files) > 0 || len(in.attempt.GetOutputs()) > 0 }

// KeepScript keeps the text of a command in a file, and returns its path.
func (s *Slot) KeepScript(text string) (string, error) {
	i := &s.info
	if err := i.open(); err != nil {
		return "", err
	}
	return i.script.path, i.script.say(text)
}

// Links are the paths to which symbolic links in the sandbox lead: inputs that are read where
// they stand.
func (in *Inputs) Links() (targets []string) {
	for _, f := range in.files {
		if target, err := os.Readlink(filepath.Join(in.attempt.Slot.Folder, f.path)); err == nil {
			targets = append(targets, filepath.Clean(target))
		}
	}
	return targets
}

// catalog is the Trivial File Catalog of the inputs. A cached file has its name in the sandbox, since programs
// that open URLs decode what a cache has escaped.
func (in *Inputs) catalog() (string, error) {
	var cached, stored []catalog.Entry
	for _, f := range in.files {
		if f.tree != nil || in.attempt.Payload.GetStrict() && f.url == "" { // the only place that it sees
			stored = append(stored, catalog.Entry{LFN: f.LFN, PFN: "file:" + filepath.Join(in.attempt.Slot.Folder, f.path)})
			continue
		}
		if f.url != "" {
			stored = append(stored, catalog.Entry{LFN: f.LFN, PFN: f.url})
			continue
		}
		if f.cached != nil {
			cached = append(cached, catalog.Entry{LFN: f.LFN, PFN: "file:" + filepath.Join(in.attempt.Slot.Folder, f.path)})
		}
		if path, err := in.ar.Roots.Path(f.pfn); err == nil {
			stored = append(stored, catalog.Entry{LFN: f.LFN, PFN: path})
		} else if f.pfn != "" {
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
