package server

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"fairway/internal/disk"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
)

// jobUploads is where, in the folder of a run in the uploads, the files are that submitted jobs read.
const jobUploads = ".jobs"

// KeepPart is part of api.Control. The folder goes with the run, as that of what came with it.
func (r *run) KeepPart(p *api.Part) (size int64, file string, err error) {
	at := filepath.Join(r.server.ownIn(folder.UploadsName, r.opened.run.OwnName()), jobUploads)
	if err := os.MkdirAll(at, 0o700); err != nil {
		return 0, "", err
	}
	root, err := os.OpenRoot(at)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = root.Close() }()
	size, complete, err := keepPart(root, p)
	if err != nil || !complete {
		return size, "", err
	}
	return size, filepath.Join(at, p.Name), disk.Sync(at)
}

// keepPart writes a part to a file that has another name until it is complete. Who sends the same file
// twice at a time writes the same bytes.
func keepPart(root *os.Root, p *api.Part) (size int64, complete bool, err error) {
	if info, err := root.Stat(p.Name); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return 0, false, err
		}
		return info.Size(), true, nil
	}
	growing := "." + p.Name
	file, err := root.OpenFile(growing, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, false, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return 0, false, err
	}
	if info.Size() < p.Offset {
		return info.Size(), false, api.ErrNotNext
	}
	if _, err := file.WriteAt(p.Content, p.Offset); err != nil {
		return 0, false, err
	}
	end := p.Offset + int64(len(p.Content))
	if !p.Last {
		return max(info.Size(), end), false, nil
	}
	err = errors.Join(file.Truncate(end), file.Sync())
	if err == nil {
		err = root.Rename(growing, p.Name)
	}
	return end, err == nil, err
}
