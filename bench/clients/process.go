package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// bench is where everything is.
type bench struct {
	root, folder string
	fairway      string // the program
	python       string // of an environment of its own
	env          []string
}

// newBench builds fairway.
func newBench(ctx context.Context) (*bench, error) {
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	b := &bench{root: root, python: filepath.Join(root, "bin/clients/bin/python")}
	if b.folder, err = os.MkdirTemp("", "clients"); err != nil {
		return nil, err
	}
	b.fairway = filepath.Join(b.folder, "bin", "fairway")
	if _, err := b.run(ctx, root, "go", "build", "-o", b.fairway, "./cmd/fairway"); err != nil {
		_ = os.RemoveAll(b.folder)
		return nil, err
	}
	source := filepath.Join(root, "python")
	b.env = append(os.Environ(), "FAIRWAY_BIN="+b.fairway,
		"PATH="+strings.Join([]string{filepath.Dir(b.fairway), filepath.Dir(b.python), os.Getenv("PATH")}, ":"),
		"PYTHONPATH="+filepath.Join(source, "src")+":"+filepath.Join(source, "snakemake-executor-plugin-fairway/src"))
	return b, nil
}

// orderly is how long a program may take to end after Ctrl-C, with all that it has started.
const orderly = 20 * time.Second

// run runs a program in a folder, and returns what it prints. When the context ends, the program is
// interrupted as by Ctrl-C, and killed if it goes on.
func (b *bench) run(ctx context.Context, folder, program string, words ...string) (string, error) {
	command := exec.CommandContext(ctx, program, words...)
	command.Dir, command.Env = folder, b.env
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGINT) }
	command.WaitDelay = orderly
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	if err := command.Run(); err != nil {
		if command.Process != nil {
			_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		}
		text := strings.TrimSpace(out.String() + said.String())
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(program), err, text[max(0, len(text)-600):])
	}
	return out.String(), nil
}

// install has modules of Python, as pip names them, in the environment of the tools.
func (b *bench) install(ctx context.Context, module string, packages ...string) error {
	if _, err := os.Stat(b.python); err != nil {
		if _, err := b.run(ctx, b.root, "python3", "-m", "venv", filepath.Join(b.root, "bin/clients")); err != nil {
			return err
		}
	}
	if _, err := b.run(ctx, b.folder, b.python, "-c", "import "+module); err == nil {
		return nil
	}
	fmt.Fprintln(os.Stderr, "installing", packages)
	_, err := b.run(ctx, b.folder, b.python, append([]string{"-m", "pip", "-q", "install"}, packages...)...)
	return err
}
