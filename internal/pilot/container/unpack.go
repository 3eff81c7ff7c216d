package container

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"fairway/internal/program"
)

// Config is what an image says of how to run in it.
type Config struct {
	Environment []string // NAME=VALUE
}

// Unpack puts all files of an image into an empty folder, and what a runtime mounts things on.
func Unpack(ctx context.Context, image, folder string) (config Config, err error) {
	file, err := os.Open(image)
	if err != nil {
		return config, err
	}
	defer file.Close()
	head := make([]byte, sifHeaderSize)
	n, err := io.ReadFull(file, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return config, fmt.Errorf("%s is no image: %w", filepath.Base(image), err)
	}
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte("hsqs")):
		err = unsquash(ctx, image, folder, 0)
	case len(head) == sifHeaderSize && bytes.Equal(head[32:42], []byte("SIF_MAGIC\x00")):
		var offset int64
		if offset, err = findSystem(file, head); err == nil {
			err = unsquash(ctx, image, folder, offset)
		}
	default:
		config, err = unpackTar(ctx, file, folder)
	}
	if err == nil {
		err = AddMountPoints(folder)
	}
	if err != nil {
		return config, fmt.Errorf("unpack the image %s: %w", filepath.Base(image), err)
	}
	return config, nil
}

// AddMountPoints makes, in the unpacked files of an image, what it lacks of that which runtimes
// mount something on.
func AddMountPoints(folder string) error {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, name := range []string{"proc", "sys", "dev", "tmp", "etc", "home", "run", "usr", "usr/bin"} {
		if _, err := root.Lstat(name); errors.Is(err, os.ErrNotExist) {
			if err := root.Mkdir(name, 0o755); err != nil {
				return err
			}
		}
	}
	for _, name := range []string{"etc/passwd", "etc/group", "etc/hosts", "etc/resolv.conf"} {
		if _, err := root.Lstat(name); errors.Is(err, os.ErrNotExist) {
			made, err := root.Create(name)
			if err != nil {
				return err
			}
			_ = made.Close()
		}
	}
	return nil
}

func unsquash(ctx context.Context, image, folder string, offset int64) error {
	began := time.Now()
	said, err := exec.CommandContext(ctx, "unsquashfs", "-no-progress", "-no-xattrs", "-no-exit-code", "-quiet", "-force",
		"-offset", strconv.FormatInt(offset, 10), "-dest", folder, image).CombinedOutput()
	if err = program.Failure(ctx, began, err); err != nil {
		return fmt.Errorf("unsquashfs: %w: %s", err, bytes.TrimSpace(said))
	}
	return nil
}

// What of a SIF file is read: its header, and descriptors of what it holds (sif.h of Apptainer).
const (
	sifHeaderSize     = 128
	sifDescriptorSize = 585
	sifPartition      = 0x4004
	sifSquashfs       = 1
	sifPrimarySystem  = 2
	maxDescriptors    = 1024
)

func findSystem(file io.ReaderAt, head []byte) (offset int64, err error) {
	total := binary.LittleEndian.Uint64(head[88:])
	at := binary.LittleEndian.Uint64(head[96:])
	if total > maxDescriptors || at > 1<<40 {
		return 0, errors.New("the SIF file is damaged")
	}
	for i := range total {
		d := make([]byte, sifDescriptorSize)
		if _, err := file.ReadAt(d, int64(at+i*sifDescriptorSize)); err != nil {
			return 0, fmt.Errorf("the SIF file is damaged: %w", err)
		}
		const extra = sifDescriptorSize - 384
		if binary.LittleEndian.Uint32(d) == sifPartition && d[4] != 0 &&
			binary.LittleEndian.Uint32(d[extra:]) == sifSquashfs &&
			binary.LittleEndian.Uint32(d[extra+4:]) == sifPrimarySystem {
			return int64(binary.LittleEndian.Uint64(d[17:])), nil
		}
	}
	return 0, errors.New("the SIF file has no system in a squashfs (an encrypted one cannot be read)")
}

func unpackTar(ctx context.Context, file *os.File, folder string) (config Config, err error) {
	archive, err := indexed(file)
	if err != nil {
		return config, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return config, err
	}
	defer root.Close()
	layers := []io.Reader{io.NewSectionReader(file, 0, 1<<62)}
	if archive != nil {
		if layers, config, err = archive.layers(); err != nil {
			return config, err
		}
	}
	for i, layer := range layers {
		if layer, err = decompressed(layer); err == nil {
			err = applyLayer(ctx, root, layer)
		}
		if err != nil {
			return config, fmt.Errorf("layer %d: %w", i+1, err)
		}
	}
	return config, nil
}

func decompressed(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	switch head, _ := buffered.Peek(4); {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return gzip.NewReader(buffered)
	case bytes.Equal(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return nil, errors.New("it is packed with zstd, which is not read: save the image with gzip, or without")
	}
	return buffered, nil
}

// indexed finds the members of a tar of layers; nil where the tar is one of the files themselves.
func indexed(file *os.File) (members, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	head := make([]byte, 2)
	if _, err := file.ReadAt(head, 0); err != nil || bytes.Equal(head, []byte{0x1f, 0x8b}) {
		return nil, err
	}
	found := members{}
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("it is no archive, SIF file or squashfs: %w", err)
		}
		at, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return nil, err
		}
		name := cleaned(header.Name)
		if header.Typeflag == tar.TypeSymlink { // docker save names a layer twice
			found[name] = found[cleaned(filepath.Join(filepath.Dir(name), header.Linkname))]
			continue
		}
		found[name] = io.NewSectionReader(file, at, header.Size)
		if len(found) > maxMembers {
			return nil, nil // of an archive of layers there are few
		}
	}
	if found["index.json"] == nil && found["manifest.json"] == nil {
		return nil, nil
	}
	return found, nil
}

const maxMembers = 10_000
