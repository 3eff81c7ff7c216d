package pilot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"fairway/internal/pilot/view"
)

// What a job with a strict sandbox sees (docs/pilot.md, "What a job may see"): all that the user
// sees, but of Fairway's folders its own files only, and none of the files by which this pilot and
// its server find keys and tokens.

func (p *pilot) checkSandbox() error {
	if p.cfg.Sandbox == "" {
		return nil
	}
	for _, path := range p.hidden() {
		if real, err := filepath.EvalSymlinks(path); err == nil &&
			strings.HasPrefix("/usr/", strings.TrimSuffix(real, "/")+"/") {
			return fmt.Errorf("sandbox: strict would hide %s, which holds the programs of this node: have the workflow stand "+
				"in a folder of its own", path)
		}
	}
	return view.Possible()
}

// hidden are the folders and files that jobs with strict sandboxes do not see. Those of the
// workflow hold its state, its results and files that were not declared.
func (p *pilot) hidden() []string {
	c := &p.cfg
	paths := []string{
		c.Workflow, c.Element, c.SandboxDir, c.SpoolDir, c.LogDir, c.Cache.Dir, c.Scratch, os.Getenv("XDG_RUNTIME_DIR"),
	}
	if path, isSocket := strings.CutPrefix(c.Server, "unix:"); isSocket {
		paths = append(paths, socketPath(path))
	}
	if path, isFile := strings.CutPrefix(c.Storage, "file:"); isFile || filepath.IsAbs(c.Storage) {
		paths = append(paths, path)
	}
	if c.Line != nil {
		paths = append(paths, c.Line.File())
	}
	uid := os.Getuid()
	paths = append(paths, fmt.Sprintf("/tmp/fairway-%d", uid), fmt.Sprintf("/tmp/bt_u%d", uid),
		fmt.Sprintf("/tmp/x509up_u%d", uid))
	for _, name := range []string{
		"BEARER_TOKEN_FILE", "X509_USER_PROXY", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE",
	} {
		paths = append(paths, os.Getenv(name))
	}
	if home, err := os.UserHomeDir(); err == nil {
		paths = append(paths, filepath.Join(home, ".aws"))
	}
	absolute := paths[:0]
	for _, path := range paths {
		if filepath.IsAbs(path) {
			absolute = append(absolute, filepath.Clean(path))
		}
	}
	return absolute
}

// viewOf is what an attempt sees: its sandbox with what stands beside it, what links in the
// sandbox lead to, and the programs in its search path.
func (p *pilot) viewOf(a *attempt) *view.View {
	v := &view.View{Hidden: p.hidden(), Shown: append(a.Slot.Own(), a.In.Links()...)}
	if a.inside != nil {
		for _, folder := range []string{a.inside.root, a.inside.folder} {
			if folder != "" {
				v.Shown = append(v.Shown, folder)
			}
		}
	}
	for _, folder := range filepath.SplitList(p.base.search) {
		if filepath.IsAbs(folder) {
			v.Shown = append(v.Shown, filepath.Clean(folder))
		}
	}
	return v
}
