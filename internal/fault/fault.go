// Package fault holds named fault points, at which a test ends, stops
// or fails the process, to show that nothing acknowledged is lost there.
//
// A point is a package-level variable, so that [Names] knows all points of a
// binary before any is reached:
//
//	var beforeApply = fault.New("store.apply.before")
//	...
//	if err := beforeApply.Hit(); err != nil {
//		return err
//	}
//
// The environment variable FAIRWAY_FAULT arms points when the process starts:
//
//	FAIRWAY_FAULT=name[:nth][:kill|error|pause][,name...]
//
// The nth time (default 1) that the point is reached, kill (the default) ends
// the process with SIGKILL, error makes Hit return an error that wraps
// [ErrInjected], and pause stops the process with SIGSTOP until somebody
// continues or kills it. The environment is inherited: where FAIRWAY_FAULT_ONCE
// names a file, a point acts only in the process that creates that file, so
// that the processes that replace a killed one live.
//
// A point that is not armed costs one atomic load. All functions may be called
// by any goroutine.
package fault

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

// ErrInjected is wrapped by the errors that armed points return.
var ErrInjected = errors.New("injected fault")

// Point is a named fault point.
type Point struct {
	name  string
	armed atomic.Pointer[arming]
}

var (
	mu     sync.Mutex // guards points
	points = map[string]*Point{}

	fromEnvironment = sync.OnceValue(func() []arming {
		armings, err := parse(os.Getenv("FAIRWAY_FAULT"))
		if err != nil {
			fmt.Fprintln(os.Stderr, "FAIRWAY_FAULT:", err)
			os.Exit(2)
		}
		return armings
	})
)

// New registers a fault point. Names are the package, what is done, and where
// in it, with dots between. It panics when the name is taken.
func New(name string) *Point {
	mu.Lock()
	defer mu.Unlock()
	if points[name] != nil {
		panic("fault: there are two points " + name)
	}
	p := &Point{name: name}
	points[name] = p
	armings := fromEnvironment()
	for i := range armings {
		if armings[i].name == name {
			p.armed.Store(&armings[i])
		}
	}
	return p
}

// Names returns the names of all points of this binary, sorted.
func Names() []string {
	mu.Lock()
	defer mu.Unlock()
	names := make([]string, 0, len(points))
	for name := range points {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Hit is called at the place. It returns nil unless the point was armed to
// return an error. A place without an error path may ignore what it returns.
func (p *Point) Hit() error {
	a := p.armed.Load()
	if a == nil {
		return nil
	}
	return a.hit()
}

// Arm arms points of this process as FAIRWAY_FAULT would, for tests that
// inject errors. The returned function disarms them.
func Arm(spec string) (disarm func(), err error) {
	armings, err := parse(spec)
	if err != nil {
		return nil, err
	}
	mu.Lock()
	defer mu.Unlock()
	var touched []*Point
	for i := range armings {
		p := points[armings[i].name]
		if p == nil {
			return nil, fmt.Errorf("there is no fault point %q", armings[i].name)
		}
		p.armed.Store(&armings[i])
		touched = append(touched, p)
	}
	return func() {
		for _, p := range touched {
			p.armed.Store(nil)
		}
	}, nil
}
