package stage

import (
	"path/filepath"

	"fairway/internal/beneath"
)

// gangFolder is the folder of what a member of a gang is told, beside its sandbox.
const gangFolder = "gang"

// GangFiles are files that a member of a gang is told of, which nobody but its user may read. They
// go with the attempt.
type GangFiles struct {
	folder string
	dir    *beneath.Folder
}

// OpenGang makes an empty folder for them.
func (s *Slot) OpenGang() (GangFiles, error) {
	if err := s.info.open(); err != nil {
		return GangFiles{}, err
	}
	s.closeGang()
	if err := s.info.dir.Mkdir(gangFolder, 0o700); err != nil {
		return GangFiles{}, err
	}
	dir, err := s.info.dir.Sub(gangFolder)
	if err != nil {
		return GangFiles{}, err
	}
	s.gang = dir
	return GangFiles{filepath.Join(s.info.folder, gangFolder), dir}, nil
}

// closeGang removes the files of the attempt before.
func (s *Slot) closeGang() {
	if s.gang != nil {
		_ = s.gang.Close()
		s.gang = nil
		_ = s.info.dir.Clear(gangFolder)
	}
}

// Path is where the file of a name is.
func (f *GangFiles) Path(name string) string { return filepath.Join(f.folder, name) }

// Mkdir makes an empty folder.
func (f *GangFiles) Mkdir(name string) error { return f.dir.Mkdir(name, 0o700) }

// Write makes a file.
func (f *GangFiles) Write(name string, text []byte) error {
	file, err := f.dir.Create(name, 0o600)
	if err != nil {
		return err
	}
	if _, err := file.Write(text); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}
