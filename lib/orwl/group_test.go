package orwl

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// freeAddresses returns where n processes can listen.
func freeAddresses(t *testing.T, network string, n int) (list []string) {
	t.Helper()
	for i := range n {
		if network == "unix" {
			list = append(list, filepath.Join(t.TempDir(), fmt.Sprint(i)))
			continue
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		must(t, err)
		defer l.Close()
		list = append(list, l.Addr().String())
	}
	return list
}

// The members of a group, which start in any order, hand a number round a ring.
func TestGroupOnARing(t *testing.T) {
	const n, rounds = 3, 20
	cert, pool := certificate(t)
	secure := &tls.Config{
		Certificates: []tls.Certificate{cert}, RootCAs: pool, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert,
	}
	for name, g := range map[string]Group{
		"unix": {Addresses: freeAddresses(t, "unix", n)},
		"tcp":  {Addresses: freeAddresses(t, "tcp", n)},
		"tls":  {Addresses: freeAddresses(t, "tcp", n), TLS: secure},
	} {
		t.Run(name, func(t *testing.T) {
			var all sync.WaitGroup
			for k := range n {
				all.Go(func() {
					g := g
					g.Process, g.Patience, g.Neighbours = k, time.Minute, []int{(k + 1) % n}
					if err := hop(g, n, rounds); err != nil {
						t.Errorf("process %d: %v", k, err)
					}
				})
			}
			all.Wait()
		})
	}
}

// hop adds what the next process has to what this one has.
func hop(g Group, n, rounds int) error {
	own, err := New(fmt.Sprint("number ", g.Process), 8, Shared(), StartWith(2))
	if err != nil {
		return err
	}
	own.Initialize(func(b []byte) { b[0] = 1 })
	m, err := g.Join(background, own)
	if err != nil {
		return err
	}
	defer m.Close()
	next, err := m.Resource(background, fmt.Sprint("number ", (g.Process+1)%n))
	if err != nil {
		return err
	}
	if r, err := m.Resource(background, own.Name()); r != Resource(own) || err != nil {
		return fmt.Errorf("its own location is %v: %w", r, err)
	}
	if _, err := m.Resource(background, "nobody's"); !errors.Is(err, ErrUnknown) {
		return fmt.Errorf("nobody's location: %w", err)
	}
	var here, there Pair
	if err := Insert(background, here.Writing(own).At(g.Process), there.Reading(next).At(g.Process)); err != nil {
		return err
	}
	pairs := Pairs{&here, &there}
	for range rounds {
		if err := pairs.Acquire(background); err != nil {
			return err
		}
		h, err1 := WriteAs[uint64](&here)
		o, err2 := ReadAs[uint64](&there)
		if err := errors.Join(err1, err2); err != nil {
			return err
		}
		h[0] += o[0]
		if err := pairs.Release(); err != nil {
			return err
		}
	}
	return errors.Join(pairs.Cancel(), m.Finish(background))
}

// What does not fit together is refused, and leaves nothing behind.
func TestGroupThatCannotJoinLeavesNothing(t *testing.T) {
	addresses := freeAddresses(t, "unix", 2)
	for name, g := range map[string]Group{
		"no such process":   {Addresses: addresses, Process: 2},
		"no such neighbour": {Addresses: addresses, Neighbours: []int{7}},
		"nobody answers":    {Addresses: addresses},
		"no place":          {Addresses: []string{"/nowhere/at/all", addresses[1]}},
	} {
		if m, err := g.Join(background); err == nil {
			t.Errorf("%s: joined", name)
			m.Close()
		}
	}
	g := Group{Addresses: addresses[:1]}
	m, err := g.Join(background)
	must(t, err)
	must(t, errors.Join(m.Finish(background), m.Close()))
}

// A process that others reach over the network says at once that it needs TLS, whatever else fails.
func TestGroupWithoutTLSBetweenHostsIsRefused(t *testing.T) {
	g := Group{Addresses: []string{"0.0.0.0:0", "127.0.0.1:1"}, Patience: time.Minute}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := g.Join(ctx); !errors.Is(err, ErrInsecure) || !strings.Contains(err.Error(), "Group.TLS") {
		t.Errorf("got %v", err)
	}
}
