package orwl

import (
	"context"
	"errors"
	"io"
	"net"

	"fairway/lib/orwl/internal/checkpoint"
)

// vault serves what task 0 keeps of all. The other tasks send their parts, by a location for each in
// which questions and answers take turns.
type vault struct {
	files  *checkpoint.Vault
	server Server
	served chan struct{} // closed when nothing is served any more
}

// openVault makes the vault of task 0, and serves it to the others.
func (c *Checkpoints) openVault() (*checkpoint.Whole, Resource, error) {
	g := c.member.gang
	files, from, err := checkpoint.OpenVault(g.Folder, g.Tasks)
	if err != nil {
		return nil, nil, err
	}
	v := &vault{files: files, served: make(chan struct{})}
	plan, err := New("plan of checkpoints", pointSize, StartWith(g.Tasks))
	if err != nil {
		return nil, nil, err
	}
	v.server.Add(plan)
	if err := c.serveVault(v); err != nil {
		return nil, nil, err
	}
	return from, plan, nil
}

// serveVault has the others reach the vault.
func (c *Checkpoints) serveVault(v *vault) error {
	g := c.member.gang
	if _, err := g.addFence(&v.server, 1); err != nil {
		return err
	}
	for k := 1; k < g.Tasks; k++ {
		l, err := New(talkName(k), 0, StartWith(2))
		if err != nil {
			return err
		}
		v.server.Add(l)
		p := new(Pair)
		if err := Insert(c.ctx, p.Writing(l).At(1)); err != nil {
			return err
		}
		c.tasks.Go(func() { v.attend(c.ctx, k, p) })
	}
	addresses := g.addresses(1)
	if addresses == nil && g.Tasks > 1 {
		return errors.New("the tasks have one port each, and checkpoints need a second one")
	}
	c.vault = v
	if g.Tasks == 1 {
		close(v.served)
		return nil
	}
	listener, err := net.Listen("tcp", addresses[0])
	if err != nil {
		close(v.served)
		return err
	}
	go func() {
		defer close(v.served)
		_ = c.member.group.serve(&v.server, listener)
	}()
	return nil
}

// storeOwn stores the part of task 0.
func (v *vault) storeOwn(c *Checkpoints, iteration int) error {
	return v.files.StoreOwn(iteration, func(w io.Writer) (checkpoint.Sum, error) {
		return checkpoint.WritePart(c.ctx, w, c.covered)
	})
}

// attend answers the questions of a task, until it is gone or ctx ends.
func (v *vault) attend(ctx context.Context, task int, p *Pair) {
	defer p.Cancel()
	var part checkpoint.Incoming
	defer part.Drop()
	for last := uint64(0); p.Acquire(ctx) == nil; last++ {
		q, err := readMessage(p)
		if err != nil || q.Number != last+1 {
			return // the task was lost, so this is what it asked before, or nothing
		}
		a, err := v.files.Answer(task, &part, q)
		if err != nil {
			a = checkpoint.Message{Kind: checkpoint.Refused, Data: []byte(err.Error())}
		}
		a.Number = q.Number
		if writeMessage(p, a) != nil || p.Release() != nil {
			return
		}
	}
}
