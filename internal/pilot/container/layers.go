package container

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fairway/internal/disk"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"strings"
)

type members map[string]*io.SectionReader

type descriptor struct {
	MediaType string `json:"mediaType"`
	Digest    string `json:"digest"`
	Platform  *struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	} `json:"platform"`
}

func (d *descriptor) member() string { return "blobs/" + strings.Replace(d.Digest, ":", "/", 1) }

// maxNested bounds how deep an index names others.
const maxNested = 4

// maxJSON bounds, in bytes, a member that is read as JSON.
const maxJSON = 16 << 20

func (m members) decode(name string, into any) error {
	from := m[name]
	if from == nil {
		return fmt.Errorf("the archive has no %s", name)
	}
	if err := json.NewDecoder(io.LimitReader(from, maxJSON)).Decode(into); err != nil {
		return fmt.Errorf("%s in the archive: %w", name, err)
	}
	return nil
}

func (m members) layers() (layers []io.Reader, config Config, err error) {
	var names []string
	var configName string
	if m["index.json"] != nil {
		names, configName, err = m.ofLayout()
	} else {
		names, configName, err = m.ofDocker()
	}
	if err != nil {
		return nil, config, err
	}
	var described struct {
		Config struct{ Env []string }
	}
	if err := m.decode(configName, &described); err != nil {
		return nil, config, err
	}
	for _, name := range names {
		if m[name] == nil {
			return nil, config, fmt.Errorf("the archive has no layer %s", name)
		}
		layers = append(layers, m[name])
	}
	return layers, Config{described.Config.Env}, nil
}

func (m members) ofLayout() (layers []string, config string, err error) {
	name := "index.json"
	for range maxNested {
		var index struct {
			Manifests []descriptor
			Config    *descriptor
			Layers    []descriptor
		}
		if err := m.decode(name, &index); err != nil {
			return nil, "", err
		}
		if index.Config != nil {
			for _, layer := range index.Layers {
				layers = append(layers, layer.member())
			}
			return layers, index.Config.member(), nil
		}
		name = ""
		for _, d := range index.Manifests {
			if p := d.Platform; p == nil || p.OS == "linux" && p.Architecture == runtime.GOARCH {
				name = d.member()
				break
			}
		}
		if name == "" {
			return nil, "", fmt.Errorf("the image has none for linux/%s", runtime.GOARCH)
		}
	}
	return nil, "", errors.New("its indexes name others too deep")
}

func (m members) ofDocker() (layers []string, config string, err error) {
	var images []struct {
		Config string
		Layers []string
	}
	if err := m.decode("manifest.json", &images); err != nil {
		return nil, "", err
	}
	if len(images) != 1 {
		return nil, "", fmt.Errorf("the archive has %d images: save one alone", len(images))
	}
	for _, layer := range images[0].Layers {
		layers = append(layers, cleaned(layer))
	}
	return layers, cleaned(images[0].Config), nil
}

func cleaned(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }

// What names in a layer mean that it takes something away (OCI image specification, layer.md).
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// layer is applied to what those below it have made.
type layer struct {
	ctx  context.Context
	root *os.Root
	made map[string]bool // by this layer
}

func applyLayer(ctx context.Context, root *os.Root, from io.Reader) error {
	l := &layer{ctx, root, map[string]bool{}}
	for r := tar.NewReader(from); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := l.take(header, r); err != nil {
			return fmt.Errorf("%s in it: %w", header.Name, err)
		}
	}
}

func (l *layer) take(header *tar.Header, content io.Reader) error {
	name, err := l.resolved(cleaned(header.Name))
	if err != nil || name == "" {
		return err
	}
	folder, base := path.Split(name)
	folder = strings.TrimSuffix(folder, "/")
	switch {
	case base == opaque:
		return l.clear(folder)
	case strings.HasPrefix(base, whiteout):
		return l.root.RemoveAll(path.Join(folder, strings.TrimPrefix(base, whiteout)))
	}
	for above := name; above != "." && above != ""; above = path.Dir(above) {
		l.made[above] = true
	}
	mode := header.FileInfo().Mode().Perm()
	info, err := l.root.Lstat(name)
	exists := err == nil
	if header.Typeflag == tar.TypeDir && exists && info.IsDir() {
		return l.root.Chmod(name, mode|0o700)
	}
	if exists {
		if err := l.root.RemoveAll(name); err != nil {
			return err
		}
	}
	if folder != "" {
		if err := l.root.MkdirAll(folder, 0o755); err != nil {
			return err
		}
	}
	switch header.Typeflag {
	case tar.TypeDir:
		return l.root.Mkdir(name, mode|0o700)
	case tar.TypeSymlink:
		return l.root.Symlink(header.Linkname, name)
	case tar.TypeLink:
		target, err := l.resolved(cleaned(header.Linkname))
		if err != nil {
			return err
		}
		return l.root.Link(target, name)
	case tar.TypeReg:
		return l.write(name, mode|0o400, content)
	}
	return nil // a device or a pipe, which nobody needs
}

func (l *layer) write(name string, mode fs.FileMode, content io.Reader) error {
	file, err := l.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, disk.Within(l.ctx, content))
	return errors.Join(err, file.Chmod(mode), file.Close())
}

func (l *layer) clear(folder string) error {
	file, err := l.root.Open(path.Join(".", folder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	names, err := file.Readdirnames(-1)
	for _, name := range names {
		if name = path.Join(folder, name); !l.made[name] {
			err = errors.Join(err, l.root.RemoveAll(name))
		}
	}
	return err
}

const maxLinks = 40

// resolved is a name without links in the folders above it. A link to an absolute path means one
// in the image.
func (l *layer) resolved(name string) (string, error) {
	links := 0
	todo, done := strings.Split(name, "/"), ""
	for len(todo) > 1 {
		next := path.Join(done, todo[0])
		target, err := l.root.Readlink(next)
		if err != nil { // no link, or not there
			done, todo = next, todo[1:]
			continue
		}
		if links++; links > maxLinks {
			return "", errors.New("too many links")
		}
		if !path.IsAbs(target) {
			target = path.Join("/", done, target)
		}
		todo, done = append(strings.Split(cleaned(target), "/"), todo[1:]...), ""
	}
	return path.Join(done, todo[0]), nil
}
