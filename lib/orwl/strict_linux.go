package orwl

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"fairway/lib/orwl/internal/memory"
)

// MaxRetired is how many mappings strict mode keeps unreachable after their
// release. An access to an older one may hit other memory and go unseen.
const MaxRetired = 4096

// strictView is one mapping of a location by one handle.
type strictView struct {
	bytes    []byte
	handle   string
	location string
	mode     Mode
	released string // file:line of Release; empty while held
}

// strictViews are all mappings that still have their addresses.
var strictViews struct {
	sync.Mutex
	all     map[*strictView]struct{}
	retired []*strictView
}

// strictMapping maps the data of a location for h alone, with the protection of its
// mode.
func strictMapping(file *memory.File, size int, h *Handle, location string, m Mode) ([]byte, error) {
	b, err := file.Map(size, m == Write)
	if err != nil || len(b) == 0 {
		return nil, err
	}
	v := &strictView{bytes: b, handle: h.Name, location: location, mode: m}
	if v.handle == "" {
		v.handle = fmt.Sprintf("%p", h)
	}
	h.views = append(h.views, v)
	strictViews.Lock()
	defer strictViews.Unlock()
	if strictViews.all == nil {
		strictViews.all = make(map[*strictView]struct{})
	}
	strictViews.all[v] = struct{}{}
	PanicOnFault()
	return b, nil
}

// retireViews makes the mappings of h unreachable, and gives the addresses of
// the oldest back once there are more than MaxRetired.
func retireViews(h *Handle) {
	strictViews.Lock()
	defer strictViews.Unlock()
	at := callerOutside()
	for _, v := range h.views {
		v.released = at
		unix.Mprotect(v.bytes, unix.PROT_NONE)
		strictViews.retired = append(strictViews.retired, v)
	}
	h.views = nil
	for len(strictViews.retired) > MaxRetired {
		oldest := strictViews.retired[0]
		strictViews.retired = strictViews.retired[1:]
		delete(strictViews.all, oldest)
		unix.Munmap(oldest.bytes)
	}
}

// callerOutside returns file:line of the first caller outside this package.
func callerOutside() string {
	pcs := make([]uintptr, 16)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		if !strings.Contains(f.Function, "fairway/lib/orwl.") || strings.HasSuffix(f.File, "_test.go") {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
		if !more {
			return "unknown place"
		}
	}
}

// Fault is an access to a location's data that its lock did not allow, found
// by strict mode.
type Fault struct {
	Location, Handle string
	// Mode is how the data was mapped.
	Mode Mode
	// Released is the file and line of Release, and empty when the lock was
	// still held: then a read mapping was written.
	Released string
}

func (f *Fault) Error() string {
	if f.Released == "" {
		return fmt.Sprintf("location %s was written through handle %s, which holds it for reading", f.Location, f.Handle)
	}
	return fmt.Sprintf("location %s was touched through handle %s, which had mapped it to %v and released it at %s",
		f.Location, f.Handle, f.Mode, f.Released)
}

// PanicOnFault lets a forbidden access panic in the calling goroutine, where it would end
// the process without saying why. A goroutine that maps data does so by itself; call
// it, together with ExplainFault, at the top of one that gets mappings from others.
func PanicOnFault() { debug.SetPanicOnFault(true) }

// ExplainFault is for defer, at the top of a goroutine that uses locations in
// strict mode: a panic by a forbidden access goes on as a *Fault, which says
// which handle it was and where it was released. Other panics go on unchanged.
func ExplainFault() {
	r := recover()
	if r == nil {
		return
	}
	if e, ok := r.(interface{ Addr() uintptr }); ok {
		if f := faultAt(e.Addr()); f != nil {
			panic(f)
		}
	}
	panic(r)
}

func faultAt(addr uintptr) *Fault {
	strictViews.Lock()
	defer strictViews.Unlock()
	for v := range strictViews.all {
		start := uintptr(unsafe.Pointer(unsafe.SliceData(v.bytes)))
		if addr >= start && addr < start+uintptr(len(v.bytes)) {
			return &Fault{Location: v.location, Handle: v.handle, Mode: v.mode, Released: v.released}
		}
	}
	return nil
}
