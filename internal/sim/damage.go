package sim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"fairway/internal/taskqueue"
)

// damaged knows what is the matter with stored files, as who reads them finds out, and
// the files of which a copy was damaged at any time.
type damaged struct {
	stored map[string]string // by PFN
	files  map[string]bool   // by LFN
}

// mayDamage plans the next time when a stored file is lost, cut or changed, or a cached
// one changed.
func (r *run) mayDamage() {
	f := r.exp.Faults
	if f.Damage.IsZero() || f.Damages > 0 && r.damages() >= f.Damages {
		return
	}
	r.after(f.Damage.Draw(r.harm), func() {
		r.damage()
		r.mayDamage()
	})
}

func (r *run) damages() int {
	return r.faced[StoredLost] + r.faced[StoredCut] + r.faced[StoredChanged] + r.faced[CachedChanged]
}

func (r *run) damage() {
	if r.harm.IntN(4) == 0 {
		r.damageCached()
		return
	}
	var there []string
	for _, spec := range r.exp.Storage {
		for _, pfn := range slices.Sorted(maps.Keys(r.elements[spec.Name].files)) {
			if _, attempt := lfnOf(pfn); attempt && r.damaged.stored[pfn] == "" {
				there = append(there, pfn)
			}
		}
	}
	if len(there) == 0 {
		return
	}
	pfn := there[r.harm.IntN(len(there))]
	lfn, _ := lfnOf(pfn)
	e := r.elementOf(pfn)
	switch fault := StoredLost + Fault(r.harm.IntN(3)); fault {
	case StoredLost:
		e.remove(pfn)
		r.spoil(fault, pfn, lfn, "is not there")
	case StoredCut:
		half := e.files[pfn] / 2
		e.used -= e.files[pfn] - half
		e.files[pfn] = half
		r.spoil(fault, pfn, lfn, fmt.Sprintf("has %d bytes", half))
	default:
		r.spoil(fault, pfn, lfn, "holds other bytes than were stored")
	}
}

func (r *run) spoil(fault Fault, pfn, lfn, why string) {
	r.faced[fault]++
	r.damaged.stored[pfn], r.damaged.files[lfn] = why, true
}

// damageCached changes a file in a cache, which nothing reads just then: its reader
// would have found it in order.
func (r *run) damageCached() {
	for _, site := range r.sites {
		for _, key := range slices.Sorted(maps.Keys(site.spaces)) {
			s := site.spaces[key]
			idle := slices.SortedFunc(maps.Keys(s.files), func(a, b taskqueue.FileRef) int {
				return strings.Compare(fmt.Sprint(a), fmt.Sprint(b))
			})
			idle = slices.DeleteFunc(idle, func(f taskqueue.FileRef) bool { return !s.idle(f) || s.files[f].changed })
			if len(idle) > 0 && r.harm.IntN(2) == 0 {
				f := idle[r.harm.IntN(len(idle))]
				s.files[f].changed = true
				r.faced[CachedChanged]++
				return
			}
		}
	}
}

// lfnOf is the file of which an attempt has stored a version; ok is false for what
// existed before.
func lfnOf(pfn string) (lfn string, ok bool) {
	_, name, _ := strings.Cut(pfn, ":")
	at := strings.LastIndex(name, ".v")
	if at < 0 {
		return "", false
	}
	return name[:at], true
}

// lost are the inputs of an attempt that it finds damaged.
func (a *attempt) lost() (list []taskqueue.LostFile) {
	for _, in := range a.Inputs {
		if why := a.pilot.run.damaged.stored[in.PFN]; why != "" {
			list = append(list, taskqueue.LostFile{File: in.File, PFN: in.PFN, Why: why})
		}
	}
	return list
}

// checkStored does what a server does first: it tells the TaskQueue which of the stored
// files that are needed are not there or have another size.
func (s *server) checkStored() {
	var lost []taskqueue.LostFile
	for file := range s.core.Stored {
		if size, ok := s.run.elementOf(file.PFN).files[file.PFN]; !ok || size != file.Size {
			if why := s.run.damaged.stored[file.PFN]; why != "" {
				lost = append(lost, taskqueue.LostFile{File: file.File, PFN: file.PFN, Why: why})
			} else {
				s.run.fail("%s is needed, and not stored", file.PFN)
			}
		}
	}
	if len(lost) > 0 {
		s.submit(taskqueue.LoseFiles{Files: lost})
	}
}
