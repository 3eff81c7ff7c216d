package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// jobSource computes for ever, or sleeps for some microseconds and then writes
// what CLOCK_MONOTONIC says, in nanoseconds, to the end of a file.
const jobSource = `
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
int main(int argc, char **argv) {
	if (argc < 3) for (volatile int i = 0;; i++);
	long us = atol(argv[2]);
	struct timespec t = {us / 1000000, us % 1000000 * 1000};
	int file = open(argv[1], O_WRONLY | O_APPEND);
	nanosleep(&t, 0);
	clock_gettime(CLOCK_MONOTONIC, &t);
	int64_t now = t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
	_exit(write(file, &now, sizeof now) != sizeof now);
}
`

// program is what the jobs execute, and the file with the times at which they
// ended.
type program struct{ path, ends string }

func buildProgram(ctx context.Context, scratch string) (program, error) {
	p := program{path: filepath.Join(scratch, "job"), ends: filepath.Join(scratch, "ends")}
	if err := os.WriteFile(p.path+".c", []byte(jobSource), 0o600); err != nil {
		return p, err
	}
	out, err := exec.CommandContext(ctx, "cc", "-O2", "-static", "-o", p.path, p.path+".c").CombinedOutput()
	if err != nil {
		return p, fmt.Errorf("building the job's program (needs a C compiler): %w\n%s", err, out)
	}
	return p, os.WriteFile(p.ends, nil, 0o600)
}

// computing is the command of a job that computes until it is ended.
func (p program) computing() []string { return []string{p.path} }

// sleeping is the command of a job that ends after d.
func (p program) sleeping(d time.Duration) []string {
	return []string{p.path, p.ends, strconv.FormatInt(d.Microseconds(), 10)}
}

// lastEnd is when the job that ended last did so, by clock.
func (p program) lastEnd() (time.Duration, error) {
	file, err := os.Open(p.ends)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	var b [8]byte
	if _, err := file.ReadAt(b[:], info.Size()-int64(len(b))); err != nil {
		return 0, fmt.Errorf("read when the job ended: %w", err)
	}
	return time.Duration(binary.NativeEndian.Uint64(b[:])), nil
}

// clock is CLOCK_MONOTONIC, which all processes share.
func clock() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano())
}
