// Command pipeline has one task that writes a buffer again and again and
// several that read each version of it at the same time, in processes of their
// own if wanted. Nobody misses a version and nobody sees one twice, without a
// barrier or a queue of messages: the order of the requests is enough.
//
//	go run ./examples/pipeline -readers 3 -processes
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"fairway/lib/orwl"
)

const size = 1 << 20

func main() {
	readers := flag.Int("readers", 3, "readers of each version")
	versions := flag.Int("versions", 200, "versions to write")
	processes := flag.Bool("processes", false, "run each reader as a process, on shared memory")
	join := flag.String("join", "", "be one of these processes: the socket of the writer")
	flag.Parse()
	var err error
	if *join != "" {
		err = joinAsReader(*join, *versions)
	} else {
		err = run(*readers, *versions, *processes)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}

func run(readers, versions int, processes bool) error {
	// The buffer starts when the writer and all readers have inserted.
	buffer, err := orwl.New("buffer", size, orwl.Shared(), orwl.StartWith(readers+1), orwl.OnLoss(orwl.Skip))
	if err != nil {
		return err
	}
	start := inThisProcess(buffer, versions)
	if processes {
		socket, stop, err := serve(buffer)
		if err != nil {
			return err
		}
		defer stop()
		start = inProcesses(socket, versions)
	}
	var all sync.WaitGroup
	errs := make([]error, readers+1)
	for i := range readers {
		all.Go(func() { errs[i] = start() })
	}
	errs[readers] = write(buffer, versions)
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	fmt.Printf("%d readers saw each of %d versions of %d bytes once\n", readers, versions, size)
	return nil
}

func inThisProcess(buffer *orwl.Location, versions int) func() error {
	return func() error { return read(buffer, versions) }
}

func inProcesses(socket string, versions int) func() error {
	return func() error {
		cmd := exec.Command(os.Args[0], "-join", socket, "-versions", fmt.Sprint(versions))
		cmd.Stderr = os.Stderr
		return cmd.Run()
	}
}

func serve(buffer *orwl.Location) (socket string, stop func(), err error) {
	folder, err := os.MkdirTemp("", "pipeline")
	if err != nil {
		return "", nil, err
	}
	socket = filepath.Join(folder, "socket")
	l, err := net.Listen("unix", socket)
	if err != nil {
		return "", nil, err
	}
	var s orwl.Server
	s.Add(buffer)
	go s.Serve(l)
	return socket, func() {
		s.Close()
		os.RemoveAll(folder)
	}, nil
}

func joinAsReader(socket string, versions int) error {
	writer, err := orwl.Dial(context.Background(), "unix", socket)
	if err != nil {
		return err
	}
	defer writer.Close()
	buffer, err := writer.Mirror(context.Background(), "buffer")
	if err != nil {
		return err
	}
	return read(buffer, versions)
}

// write makes the versions: every word is the number of the version.
func write(buffer orwl.Resource, versions int) error {
	ctx := context.Background()
	var p orwl.Pair
	if err := orwl.Insert(ctx, p.Writing(buffer).At(0)); err != nil {
		return err
	}
	for version := range versions {
		if err := p.Acquire(ctx); err != nil {
			return err
		}
		words, err := orwl.WriteAs[uint64](&p)
		if err != nil {
			return err
		}
		for i := range words {
			words[i] = uint64(version)
		}
		if err := p.Release(); err != nil {
			return err
		}
	}
	return p.Cancel()
}

// read checks that the versions come one after the other, each complete.
func read(buffer orwl.Resource, versions int) error {
	ctx := context.Background()
	var p orwl.Pair
	if err := orwl.Insert(ctx, p.Reading(buffer).At(1)); err != nil {
		return err
	}
	for version := range versions {
		if err := p.Acquire(ctx); err != nil {
			return err
		}
		words, err := orwl.ReadAs[uint64](&p)
		if err != nil {
			return err
		}
		for i, w := range words {
			if w != uint64(version) {
				return fmt.Errorf("word %d of version %d is of version %d", i, version, w)
			}
		}
		if err := p.Release(); err != nil {
			return err
		}
	}
	return p.Cancel()
}
