package storage

import (
	"context"
	"io"
	"sync"
	"time"
)

// DefaultTransfers is how many transfers a process makes at once with one
// server. Further ones wait, since they would only make a busy server slower.
const DefaultTransfers = 8

// IdleTimeout is how long a connection to a server is kept that no transfer uses.
const IdleTimeout = 30 * time.Second

type limited struct {
	Element
	most int

	mu    sync.Mutex // guards hosts
	hosts map[string]chan struct{}
}

// Limit decorates an element so that at most so many transfers (Open until the
// reader is closed, Get, Put) are under way with each host at once.
func Limit(e Element, most int) Element {
	return &limited{Element: e, most: most, hosts: map[string]chan struct{}{}}
}

func (l *limited) slots(pfn string) chan struct{} {
	host := HostOf(pfn)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.hosts[host] == nil {
		l.hosts[host] = make(chan struct{}, l.most)
	}
	return l.hosts[host]
}

func (l *limited) enter(ctx context.Context, pfn string) (leave func(), err error) {
	slots := l.slots(pfn)
	select {
	case slots <- struct{}{}:
		return sync.OnceFunc(func() { <-slots }), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
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

// Unwrap is the reader itself.
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
