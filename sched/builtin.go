package sched

import (
	"sync"
	"sync/atomic"
)

// builtin holds the kinds that come with a scheduler, made when first used.
type builtin struct {
	fdOnce sync.Once
	fd     *Handle[FD, Events]
	fdErr  error

	fileOnce sync.Once
	file     *Handle[FileQuery, FileState]
	fileErr  error

	pidOnce sync.Once
	pid     *Handle[int, struct{}]
	blocked atomic.Int32 // threads that wait for the end of a process
}

func (b *builtin) descriptors(s *Scheduler) (*Handle[FD, Events], error) {
	b.fdOnce.Do(func() {
		b.fd, b.fdErr = NewDescriptors(s, func(*Kind[FD, Events]) {})
	})
	return b.fd, b.fdErr
}

func (b *builtin) files(s *Scheduler) (*Handle[FileQuery, FileState], error) {
	b.fileOnce.Do(func() {
		var n notifier
		if n, b.fileErr = newNotifier(s.log); b.fileErr == nil {
			set := newFileSet(n, s.config.FileInterval, FileRecheck)
			b.file = Register(s, set.kind())
			s.onClose(n, n.close)
		}
	})
	return b.file, b.fileErr
}
