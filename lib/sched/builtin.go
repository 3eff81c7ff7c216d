package sched

import (
	"sync"
	"sync/atomic"

	"fairway/lib/sched/internal/notices"
)

// builtin holds the kinds that come with a scheduler, made when first used.
type builtin struct {
	fd      lazily[*Handle[FD, Events]]
	file    lazily[*Handle[FileQuery, FileState]]
	pid     lazily[*Handle[int, struct{}]]
	blocked atomic.Int32 // threads that wait for the end of a process
}

// lazily is something that is made when first used. What could not be made, because the
// process had no descriptors left for instance, is made at the next use.
type lazily[T any] struct {
	made  atomic.Pointer[T]
	mutex sync.Mutex // held while it is made
}

func (l *lazily[T]) get(construct func() (T, error)) (T, error) {
	if made := l.made.Load(); made != nil {
		return *made, nil
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if made := l.made.Load(); made != nil {
		return *made, nil
	}
	made, err := construct()
	if err == nil {
		l.made.Store(&made)
	}
	return made, err
}

func (s *Scheduler) descriptors() (*Handle[FD, Events], error) {
	return s.builtin.fd.get(func() (*Handle[FD, Events], error) {
		return NewDescriptors(s, func(*Kind[FD, Events]) {})
	})
}

func (s *Scheduler) files() (*Handle[FileQuery, FileState], error) {
	return s.builtin.file.get(func() (*Handle[FileQuery, FileState], error) {
		n, err := notices.New(s.log)
		if err != nil {
			return nil, err
		}
		return register(s, newFileSet(n, s.config.FileInterval, FileRecheck).kind(), n.Close), nil
	})
}
