package pilot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"fairway/internal/pilot/container"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// imagesFolder holds, in the folder of the pilot, the images that are unpacked.
const imagesFolder = "images"

// maxImages bounds the images that a pilot has unpacked, beyond those that attempts use.
const maxImages = 4

// images are those that a pilot has unpacked. Each is unpacked once, by the first attempt that runs
// in it.
type images struct {
	mu   sync.Mutex // guards what follows
	all  map[string]*image
	made int // names given, in the order of their first use
}

// image is an unpacked image, or one that is being unpacked by its first user.
type image struct {
	key    string
	number int
	root   string
	config container.Config
	done   chan struct{} // closed when it is there, or err says why not
	err    error
	users  int // guarded by images.mu
}

// inside is in what the command of an attempt runs, besides its sandbox.
type inside struct {
	image  *image // nil: in no container
	root   string
	folder string // its environment; empty: none
}

// enter finds in what the command of an attempt runs, and sets its variables accordingly. The
// caller leaves what it returns, also with an error.
func (p *pilot) enter(a *attempt) (in *inside, err error) {
	in = &inside{}
	own := maps.Clone(a.Payload.GetEnvironment())
	if own == nil {
		own = map[string]string{}
	}
	search := p.base.search
	if c := a.Payload.GetContainer(); c != nil {
		if err := p.enterImage(a, in, c.GetImage()); err != nil {
			return in, err
		}
		search = container.DefaultPath
		for _, variable := range in.image.config.Environment {
			name, value, _ := strings.Cut(variable, "=")
			if name == "PATH" {
				search = value
			} else if _, given := own[name]; !given {
				own[name] = value
			}
		}
		if os.Getenv("USER") == "" { // which Charliecloud wants
			own["USER"] = strconv.Itoa(os.Getuid())
		}
		own["LD_LIBRARY_PATH"], own["LD_PRELOAD"] = "", ""
	}
	if path, given := own["PATH"]; given {
		search = path
	}
	if lfn := a.Payload.GetEnvironmentFolder(); lfn != "" {
		if in.folder = a.In.Unpacked(lfn); in.folder == "" {
			return in, fmt.Errorf("the environment %s is not among the inputs", lfn)
		}
		search = filepath.Join(in.folder, "bin") + string(filepath.ListSeparator) + search
		packages := in.folder
		if others := own["PYTHONPATH"]; others != "" {
			packages += string(filepath.ListSeparator) + others
		}
		own["PYTHONPATH"] = packages
	}
	own["PATH"] = search
	a.Payload.Environment = own
	return in, nil
}

func (p *pilot) enterImage(a *attempt, in *inside, lfn string) (err error) {
	if in.root = a.In.Unpacked(lfn); in.root != "" { // the image is a folder
		in.image = &image{}
		return container.AddMountPoints(in.root)
	}
	path, err := a.PathOf(lfn)
	if err == nil {
		in.image, err = p.imageOf(a, lfn, filepath.Join(a.Slot.Folder, path))
	}
	if err != nil {
		return fmt.Errorf("container: %w", err)
	}
	in.root = in.image.root
	return nil
}

func (p *pilot) imageOf(a *attempt, lfn, path string) (*image, error) {
	key := ""
	for _, f := range a.GetInputs() {
		if f.GetFile().GetLfn() == lfn {
			key = fmt.Sprintf("%d %s %d %d %s", a.GetRun(), lfn, f.GetFile().GetVersion(), f.GetFile().GetTag(), f.GetPfn())
		}
	}
	if key == "" {
		return nil, fmt.Errorf("the image %s is not among the inputs", lfn)
	}
	for {
		i, mine := p.images.take(key)
		if mine {
			i.err = p.unpackImage(a.Ctx, i, path)
			close(i.done)
		} else if _, err := sched.Receive(a.Ctx, p.sched, i.done); !errors.Is(err, sched.ErrChannelClosed) {
			p.images.leave(i)
			return nil, err
		}
		if i.err == nil {
			return i, nil
		}
		p.images.giveUp(i)
		if mine || a.Ctx.Err() != nil {
			return nil, i.err
		}
	}
}

// unpackImage unpacks an image, and removes those that nobody has used for longest.
func (p *pilot) unpackImage(ctx context.Context, i *image, path string) error {
	for _, unused := range p.images.unused() {
		if err := p.workspace.dir.Clear(unused.name()); err != nil {
			p.log.Warn("an unpacked image could not be removed", "error", err)
		}
	}
	for _, folder := range []string{imagesFolder, i.name()} {
		if err := p.workspace.dir.Mkdir(folder, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	i.root = filepath.Join(p.workspace.folder, i.name())
	var err error
	if i.config, err = container.Unpack(ctx, path, i.root); err != nil {
		return errors.Join(err, p.workspace.dir.Clear(i.name()))
	}
	return nil
}

func (i *image) name() string { return filepath.Join(imagesFolder, strconv.Itoa(i.number)) }

func (m *images) take(key string) (i *image, mine bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i = m.all[key]; i == nil {
		m.made++
		i, mine = &image{key: key, number: m.made, done: make(chan struct{})}, true
		if m.all == nil {
			m.all = map[string]*image{}
		}
		m.all[key] = i
	}
	i.users++
	return i, mine
}

func (m *images) leave(i *image) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i.users--
}

// giveUp has the next one who needs an image unpack it again.
func (m *images) giveUp(i *image) {
	m.mu.Lock()
	defer m.mu.Unlock()
	i.users--
	if m.all[i.key] == i {
		delete(m.all, i.key)
	}
}

// unused takes away the images beyond maxImages that nobody uses, those that came first.
func (m *images) unused() (unused []*image) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for len(m.all) > maxImages {
		var first *image
		for _, i := range m.all {
			if i.users == 0 && (first == nil || i.number < first.number) {
				first = i
			}
		}
		if first == nil {
			break
		}
		delete(m.all, first.key)
		unused = append(unused, first)
	}
	return unused
}

func (p *pilot) leaveInside(in *inside) {
	if in != nil && in.image != nil && in.image.done != nil {
		p.images.leave(in.image)
	}
}

func (in *inside) has(program string) bool {
	for _, folder := range []string{"bin", "usr/bin", "usr/local/bin"} {
		if _, err := os.Lstat(filepath.Join(in.root, folder, program)); err == nil {
			return true
		}
	}
	return false
}

func (p *pilot) contained(a *attempt, argv []string) (path string, words []string, err error) {
	call := container.Call{
		Root: a.inside.root, Dir: a.Slot.Folder, Writable: a.Slot.Own(), Readable: a.In.Links(),
		Strict: a.Payload.GetStrict(), Argv: argv,
	}
	if a.inside.folder != "" {
		call.Readable = append(call.Readable, a.inside.folder)
	}
	program, words, err := call.Command(a.Payload.GetContainer().GetRuntime())
	if err != nil {
		return "", nil, err
	}
	path, err = p.base.find(program, "")
	return path, words, err
}

func inContainer(payload *wire.Payload) bool { return payload.GetContainer() != nil }
