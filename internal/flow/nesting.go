package flow

import (
	"fairway/internal/flow/pattern"
	"fairway/internal/logical"
)

// inTheWay says why a file cannot be beside those that are known, or "": it is
// a folder of one of them, or one of them is a folder of it.
func (f *Flow) inTheWay(lfn string) string {
	if inside, ok := f.folders[logical.Path(lfn)]; ok && inside != lfn {
		return pattern.Nested(lfn, inside)
	}
	for folder := range pattern.FoldersOf(lfn) {
		if inside, ok := f.folders[folder]; ok {
			if inside == folder+"/" && inside != lfn {
				return pattern.Nested(inside, lfn)
			}
			break // what it is in is known too
		}
		if n := f.names.Find(folder); n != nil && (n.file != nil || n.written) {
			return pattern.Nested(folder, lfn)
		}
	}
	return ""
}

func (f *Flow) occupy(lfn string) {
	for folder := range pattern.FoldersOf(lfn) {
		if _, ok := f.folders[folder]; ok {
			break
		}
		f.folders[folder] = lfn
	}
}
