package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"fairway/bench/measure"
)

// jobSource sleeps for some milliseconds, makes a file where it is given one, and
// then adds its number and the CLOCK_MONOTONIC of its begin and end, in
// nanoseconds, to the end of a file.
const jobSource = `
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
static int64_t now(void) {
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}
int main(int argc, char **argv) {
	int64_t record[3];
	record[1] = now();
	if (argc < 4) return 2;
	record[0] = atol(argv[2]);
	long ms = atol(argv[3]);
	struct timespec t = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&t, 0);
	if (argc > 4 && open(argv[4], O_WRONLY | O_CREAT, 0644) < 0) return 3;
	int file = open(argv[1], O_WRONLY | O_APPEND);
	record[2] = now();
	return write(file, record, sizeof record) != sizeof record;
}
`

// execution is one run of a job, by clock.
type execution struct {
	number     int
	began, end time.Duration
}

// program is what the jobs execute, and the file in which they tell of themselves.
type program struct {
	path, times string
	length      time.Duration
}

func buildProgram(ctx context.Context, scratch string, length time.Duration) (program, error) {
	p := program{path: filepath.Join(scratch, "job"), times: filepath.Join(scratch, "times"), length: length}
	if err := os.WriteFile(p.path+".c", []byte(jobSource), 0o600); err != nil {
		return p, err
	}
	out, err := exec.CommandContext(ctx, "cc", "-O2", "-static", "-o", p.path, p.path+".c").CombinedOutput()
	if err != nil {
		return p, fmt.Errorf("building the jobs' program (needs a C compiler): %w\n%s", err, out)
	}
	return p, p.reset()
}

// reset forgets the executions so far.
func (p program) reset() error { return os.WriteFile(p.times, nil, 0o600) }

// command is that of the job with a number, which may be a variable.
func (p program) command(number string) string {
	return fmt.Sprintf("%s %s %s %s", p.path, p.times, number, strconv.FormatInt(p.length.Milliseconds(), 10))
}

// executions are those since the last reset, in the order of their numbers. Each of
// the jobs must have run, and once.
func (p program) executions(jobs int) ([]execution, error) {
	text, err := os.ReadFile(p.times)
	if err != nil {
		return nil, err
	}
	var all []execution
	for size := 24; len(text) >= size; text = text[size:] {
		word := func(i int) time.Duration { return time.Duration(binary.NativeEndian.Uint64(text[8*i:])) }
		all = append(all, execution{number: int(word(0)), began: word(1), end: word(2)})
	}
	slices.SortFunc(all, func(a, b execution) int { return cmp.Compare(a.number, b.number) })
	for i := range all {
		if all[i].number != i+1 {
			return nil, fmt.Errorf("execution %d is of job %d", i+1, all[i].number)
		}
	}
	if len(all) != jobs {
		return nil, fmt.Errorf("%d executions of %d jobs", len(all), jobs)
	}
	return all, nil
}

// lastEnd is how long after a time the last one ended, in seconds.
func lastEnd(all []execution, after time.Duration) float64 {
	end := after
	for _, e := range all {
		end = max(end, e.end)
	}
	return (end - after).Seconds()
}

// gap is the median time from the end of one to the begin of the next, in
// milliseconds.
func gap(all []execution) float64 {
	var gaps []float64
	for i := range all[1:] {
		gaps = append(gaps, (all[i+1].began-all[i].end).Seconds()*1000)
	}
	return measure.Median(gaps)
}

// clock is CLOCK_MONOTONIC, which all processes share.
func clock() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return time.Duration(t.Nano())
}
