package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// countedSource is true with a counter. Linked statically it starts sooner than
// true itself.
const countedSource = `
#include <fcntl.h>
#include <unistd.h>
int main(int argc, char **argv) {
	int file = open(argv[1], O_WRONLY | O_APPEND);
	if (file < 0 || write(file, ".", 1) != 1) return 1;
	return 0;
}
`

// counted is the program that all systems run, and the file in which its
// executions are counted.
type counted struct{ path, counter string }

func buildCounted(ctx context.Context, scratch string) (counted, error) {
	c := counted{path: filepath.Join(scratch, "counted"), counter: filepath.Join(scratch, "executions")}
	source := c.path + ".c"
	if err := os.WriteFile(source, []byte(countedSource), 0o600); err != nil {
		return c, err
	}
	out, err := exec.CommandContext(ctx, "cc", "-O2", "-static", "-o", c.path, source).CombinedOutput()
	if err != nil {
		return c, fmt.Errorf("building the counted program (needs a C compiler): %w\n%s", err, out)
	}
	return c, c.reset()
}

func (c counted) reset() error { return os.WriteFile(c.counter, nil, 0o600) }

func (c counted) executions() (int, error) {
	info, err := os.Stat(c.counter)
	if err != nil {
		return 0, err
	}
	return int(info.Size()), nil
}
