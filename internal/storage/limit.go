package storage

import (
	"context"
	"io"
	"sync"
	"time"
)

// DefaultTransfers is how many transfers the processes of a user make at once with one
// server from one machine. Further ones wait, since they would only make a busy server slower.
const DefaultTransfers = 8

// IdleTimeout is how long a connection to a server is kept that no transfer uses.
const IdleTimeout = 30 * time.Second

type limited struct {
	Element
	most  int
	sleep Sleep
	all   *transfers // of all hosts together; nil: each has its own

	mu    sync.Mutex // guards hosts
	hosts map[string]*transfers
}

// Limit decorates an element so that at most so many transfers (Open until the
// reader is closed, Get, Put) are under way with each host at once, of all processes of the
// user on this machine that limit theirs. One that is stopped meanwhile does not count for
// more than a second. sleep is for pauses in which other processes are waited for.
func Limit(e Element, most int, sleep Sleep) Element {
	return &limited{Element: e, most: most, sleep: sleep, hosts: map[string]*transfers{}}
}

// LimitProcess decorates an element so that this process has at most so many transfers under way
// by it at once, whatever their PFNs. It is for an element which asks another process that
// limits its transfers as [Limit] does: if both counted there, each could wait for the other.
func LimitProcess(e Element, most int) Element {
	return &limited{Element: e, all: newTransfers("", most, nil)}
}

func (l *limited) with(pfn string) *transfers {
	if l.all != nil {
		return l.all
	}
	host := HostOf(pfn)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts[host] == nil {
		l.hosts[host] = newTransfers(host, l.most, l.sleep)
	}
	return l.hosts[host]
}

func (l *limited) enter(ctx context.Context, pfn string) (leave func(), err error) {
	leave, err = l.with(pfn).enter(ctx)
	if err != nil {
		return nil, err
	}
	return sync.OnceFunc(leave), nil
}

func (l *limited) Open(ctx context.Context, pfn string) (io.ReadCloser, error) {
	leave, err := l.enter(ctx, pfn)
	if err != nil {
		return nil, err
	}
	body, err := l.Element.Open(ctx, pfn)
	if err != nil {
		leave()
		return nil, err
	}
	return &leaving{body, leave}, nil
}

type leaving struct {
	io.ReadCloser
	leave func()
}

func (l *leaving) Unwrap() io.ReadCloser { return l.ReadCloser }

func (l *leaving) Close() error {
	defer l.leave()
	return l.ReadCloser.Close()
}

func (l *limited) Get(ctx context.Context, pfn, path string) (int64, error) {
	leave, err := l.enter(ctx, pfn)
	if err != nil {
		return 0, err
	}
	defer leave()
	return l.Element.Get(ctx, pfn, path)
}

func (l *limited) Put(ctx context.Context, path, pfn string) error {
	leave, err := l.enter(ctx, pfn)
	if err != nil {
		return err
	}
	defer leave()
	return l.Element.Put(ctx, path, pfn)
}
