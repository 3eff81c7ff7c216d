// Package notices tells of changes in folders, where the system does.
package notices

import "time"

// Notifier tells of changes in folders. All but Nudge is called by the one
// goroutine that detects file events.
type Notifier interface {
	// Watch asks for notices about what stands at the path of folder now, and
	// reports whether they will tell of what happens there. It may be called
	// again.
	Watch(folder string) bool
	Unwatch(folder string)
	// Wait calls changed for each path of which there is a notice; an empty one
	// means that notices were lost. It returns after some notices, after a
	// nudge, or after limit if that is not negative.
	Wait(limit time.Duration, changed func(folder, name string))
	Nudge()
	Close()
}
