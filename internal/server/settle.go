package server

import (
	"io/fs"
	"time"
)

// settling tells which files of a watched input have been left alone for SettleTime.
// It remembers, by path, those with a time of modification that is still to
// come: of another host's clock, or kept by who copied them.
type settling map[string]sighting

type sighting struct {
	identity string
	since    time.Time
}

// settled reports whether the file at path is taken to be complete at a time.
func (st settling) settled(path string, info fs.FileInfo, now time.Time) bool {
	age := now.Sub(info.ModTime())
	if age >= 0 {
		delete(st, path)
		return age >= SettleTime
	}
	identity := fileIdentity(info)
	if st[path].identity != identity {
		st[path] = sighting{identity, now}
	}
	return now.Sub(st[path].since) >= SettleTime
}
