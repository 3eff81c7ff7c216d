package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"fairway/bench/measure"
	"fairway/lib/orwl"
	"fairway/lib/subprocess"
)

// childFlag makes this program the other process of a row.
const childFlag = "-child"

const (
	bulk  = 64 << 20
	giant = 1 << 30
)

// owner is the other process: it owns locations, and answers on raw sockets.
type owner struct {
	*subprocess.Child
	tcp  string // where orwl listens
	unix string
	echo string // where raw TCP is echoed, in 8 bytes
	raw  string // where raw TCP is answered with bulk bytes
}

func startOwner() (*owner, error) {
	child, err := subprocess.Start(subprocess.Self(childFlag))
	if err != nil {
		return nil, err
	}
	o := &owner{Child: child}
	addresses, err := o.Hear()
	if err == nil {
		_, err = fmt.Sscan(addresses, &o.tcp, &o.unix, &o.echo, &o.raw)
	}
	return o, err
}

// serveRows is the other process.
func serveRows() error {
	folder, err := os.MkdirTemp("", "lock")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var s orwl.Server
	defer s.Close()
	word, err := orwl.New("word", 8)
	if err != nil {
		return err
	}
	large, err := orwl.New("bulk", bulk)
	if err != nil {
		return err
	}
	small, err := orwl.New("small", 8, orwl.Shared())
	if err != nil {
		return err
	}
	huge, err := orwl.New("giant", giant, orwl.Shared())
	if err != nil {
		return err
	}
	s.Add(word, large, small, huge)
	if err := serveHandles(&s); err != nil {
		return err
	}
	var addresses []string
	for _, network := range []string{"tcp", "unix"} {
		address := "127.0.0.1:0"
		if network == "unix" {
			address = filepath.Join(folder, "socket")
		}
		l, err := net.Listen(network, address)
		if err != nil {
			return err
		}
		go s.Serve(l)
		addresses = append(addresses, l.Addr().String())
	}
	for _, answer := range []int{8, bulk} {
		address, err := serveRaw(answer)
		if err != nil {
			return err
		}
		addresses = append(addresses, address)
	}
	fmt.Println(strings.Join(addresses, " "))
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		if err := change(large, lines.Text()); err != nil {
			return err
		}
		fmt.Println("done")
	}
	return nil
}

// change writes all of the data, with other bytes each time.
func change(l *orwl.Location, with string) error {
	var h orwl.Handle
	if err := errors.Join(h.WriteRequest(l), h.Acquire(context.Background())); err != nil {
		return err
	}
	words, err := orwl.WriteAs[uint64](&h)
	if err != nil {
		return err
	}
	seed, _ := strconv.ParseUint(with, 10, 64)
	for i := range words {
		words[i] = seed + uint64(i)
	}
	return h.Release()
}

// serveRaw answers each 8 bytes with a number of bytes.
func serveRaw(answer int) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				question, reply := make([]byte, 8), make([]byte, answer)
				for {
					if _, err := io.ReadFull(conn, question); err != nil {
						return
					}
					if _, err := conn.Write(reply); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String(), nil
}

// rawRounds asks for answers of a size.
func rawRounds(address string, answer, n int) (func() (float64, error), error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	question, reply := make([]byte, 8), make([]byte, answer)
	return func() (float64, error) {
		start := time.Now()
		for range n {
			if _, err := conn.Write(question); err != nil {
				return 0, err
			}
			if _, err := io.ReadFull(conn, reply); err != nil {
				return 0, err
			}
		}
		return float64(time.Since(start)) / float64(n), nil
	}, nil
}

// opened is a mirror in the owner's process.
func opened(network, address, name string) (*orwl.Mirror, error) {
	p, err := orwl.Dial(context.Background(), network, address)
	if err != nil {
		return nil, err
	}
	return p.Mirror(context.Background(), name)
}

// grants measures from request to grant, and lets use look at the data. The
// release is not in the figure.
func grants(m *orwl.Mirror, n int, before func(i int) error, use func(h *orwl.Handle) error) func() (float64, error) {
	var h orwl.Handle
	ctx := context.Background()
	return func() (float64, error) {
		var total time.Duration
		for i := range n {
			if err := before(i); err != nil {
				return 0, err
			}
			start := time.Now()
			if err := errors.Join(h.ReadRequest(m), h.Acquire(ctx)); err != nil {
				return 0, err
			}
			if err := use(&h); err != nil {
				return 0, err
			}
			total += time.Since(start)
			if err := h.Release(); err != nil {
				return 0, err
			}
		}
		return float64(total) / float64(n), nil
	}
}

func nothing(int) error { return nil }

// remote is the cycle of a pair that changes 8 bytes: one frame posts the next
// request and releases, one grants, as one message goes each way in the
// ping-pong.
func remote(quick bool) (measure.Row, error) {
	o, err := startOwner()
	if err != nil {
		return measure.Row{}, err
	}
	defer o.Stop()
	m, err := opened("tcp", o.tcp, "word")
	if err != nil {
		return measure.Row{}, err
	}
	const each = 200
	raw, err := rawRounds(o.echo, 8, each)
	if err != nil {
		return measure.Row{}, err
	}
	var p orwl.Pair
	ctx := context.Background()
	if err := errors.Join(p.WriteRequest(m), p.Acquire(ctx)); err != nil {
		return measure.Row{}, err
	}
	return measure.Alternate("remote", rounds(quick), func() (float64, error) {
		start := time.Now()
		for range each {
			words, err := orwl.WriteAs[uint64](&p)
			if err != nil {
				return 0, err
			}
			words[0]++
			if err := errors.Join(p.Release(), p.Acquire(ctx)); err != nil {
				return 0, err
			}
		}
		return float64(time.Since(start)) / each, nil
	}, raw)
}

func remoteBulk(quick bool) (measure.Row, error) {
	o, err := startOwner()
	if err != nil {
		return measure.Row{}, err
	}
	defer o.Stop()
	m, err := opened("tcp", o.tcp, "bulk")
	if err != nil {
		return measure.Row{}, err
	}
	raw, err := rawRounds(o.raw, bulk, 1)
	if err != nil {
		return measure.Row{}, err
	}
	turn := 0
	grant := grants(m, 1, func(int) error {
		turn++
		_, err := o.Ask(strconv.Itoa(turn))
		return err
	}, func(h *orwl.Handle) error {
		words, err := orwl.ReadAs[uint64](h)
		if err == nil && (words[0] != uint64(turn) || words[len(words)-1] != uint64(turn+len(words)-1)) {
			return errors.New("the grant came without the data")
		}
		return err
	})
	return measure.Alternate("remote-bulk", rounds(quick)/4, grant, raw)
}
