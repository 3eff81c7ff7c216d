package xrootd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"fairway/internal/legible"
	"fairway/internal/storage"
)

// Time limits of the clients, in seconds, as they read them. A transfer ends when
// it stalls (storage.StallTime), or with its context.
var limits = []string{
	"XRD_CONNECTIONWINDOW=10", "XRD_CONNECTIONRETRY=1", "XRD_REQUESTTIMEOUT=60", "XRD_STREAMTIMEOUT=60",
	"XRD_TIMEOUTRESOLUTION=1",
	"XRD_STREAMERRORWINDOW=10",
	// Only here a client tells that the server has redirected it to a file of this
	// machine (astray). What it says otherwise at this level is left out (kept).
	"XRD_LOGLEVEL=Debug", "XRD_LOGMASK_WARNING=None", "XRD_LOGMASK_INFO=None",
}

// astray is what a client says when a server sends it to a file of the machine that
// it runs on, which it follows. What it reads there is not what was asked for.
const astray = "Handling local redirect"

// errAstray is the error of such a transfer.
var errAstray = errors.New("the server redirects to a file of this machine")

// writeNoFile begins a command that can write to no file, so that a server which
// redirects what is sent to it changes none.
var writeNoFile = []string{"/bin/sh", "-c", `ulimit -f 0 && exec "$0" "$@"`}

// QueryTimeout is how long a question may take; a server may read a whole file
// before it tells the checksum.
const QueryTimeout = 10 * time.Minute

// maxMessage bounds what is kept of what a client says, in bytes.
const maxMessage = 4 << 10

var serverCode = regexp.MustCompile(`\[(3\d{3})\]`)

func (f file) failed(ctx context.Context, program string, err error, said *clientOutput) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	if said.astray {
		return fmt.Errorf("%s: %w", f.pfn, errAstray)
	}
	if errors.Is(err, exec.ErrNotFound) {
		return fmt.Errorf("%s: %s is not installed on this machine; it is part of Debian's package xrootd-client",
			f.pfn, program)
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	told := &Error{PFN: f.pfn, Program: program, Text: said.last()}
	if told.Text == "" {
		told.Text = exit.String()
	}
	if code := serverCode.FindStringSubmatch(said.text.String()); code != nil {
		told.Code, _ = strconv.Atoi(code[1])
	}
	return told
}

// clientOutput holds the beginning of what a client says, without what is for those who look
// for mistakes in it.
type clientOutput struct {
	text   bytes.Buffer
	line   []byte // that has not ended
	astray bool
}

func (k *clientOutput) Write(p []byte) (int, error) {
	for part := range bytes.Lines(p) {
		k.line = append(k.line, part[:min(len(part), maxMessage-len(k.line))]...)
		if part[len(part)-1] == '\n' {
			k.end()
		}
	}
	return len(p), nil
}

func (k *clientOutput) end() {
	if bytes.Contains(k.line, []byte("][Debug")) {
		k.astray = k.astray || bytes.Contains(k.line, []byte(astray))
	} else {
		k.text.Write(k.line[:min(len(k.line), maxMessage-k.text.Len())])
	}
	k.line = k.line[:0]
}

func (k *clientOutput) last() string {
	k.end()
	lines := strings.Split(strings.TrimSpace(k.text.String()), "\n")
	return legible.Line(strings.TrimSpace(lines[len(lines)-1]), storage.MaxSaid)
}

// start prepares a client that is killed with ctx, and with this process.
func start(ctx context.Context, program string, arguments ...string) (*exec.Cmd, *clientOutput) {
	said := new(clientOutput)
	path, err := exec.LookPath(program)
	words := append(append(slices.Clone(writeNoFile), path), arguments...)
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	if err != nil {
		c.Err = err
	}
	c.Env = append(os.Environ(), limits...)
	c.Stderr = said
	c.WaitDelay = time.Second
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c, said
}

func (f file) xrdfs(ctx context.Context, arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, QueryTimeout,
		&storage.AwayError{Host: f.server, Limit: QueryTimeout})
	defer cancel()
	defer storage.Asked(ctx)()
	c, said := start(ctx, "xrdfs", append([]string{f.server}, arguments...)...)
	text := &boundedOutput{cancel: cancel}
	c.Stdout = text
	err := c.Run()
	switch {
	case text.over:
		return "", &storage.ListingError{PFN: f.pfn, Why: fmt.Sprintf("xrdfs has printed more than %d bytes", maxList)}
	case err != nil || said.astray:
		return "", f.failed(ctx, "xrdfs", err, said)
	}
	return text.String(), nil
}

// boundedOutput ends a program that prints more than maxList bytes.
type boundedOutput struct {
	bytes.Buffer
	cancel func()
	over   bool
}

func (b *boundedOutput) Write(p []byte) (int, error) {
	if b.over = b.over || b.Len()+len(p) > maxList; b.over {
		b.cancel()
		return len(p), nil
	}
	return b.Buffer.Write(p)
}

// programs has xrdcp and xrdfs do everything, a process for each request.
type programs struct{}

var _ speaker = programs{}

func (programs) stat(ctx context.Context, f file, name string) (storage.Info, bool, error) {
	text, err := f.xrdfs(ctx, "stat", name)
	if err != nil {
		return storage.Info{}, false, err
	}
	info, folder, err := parseStat(text)
	if err != nil {
		err = fmt.Errorf("%s: %w", f.pfn, err)
	}
	return info, folder, err
}

func parseStat(text string) (info storage.Info, folder bool, err error) {
	info.Size = -1
	for line := range strings.SplitSeq(text, "\n") {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Size":
			info.Size, err = strconv.ParseInt(value, 10, 64)
		case "MTime":
			info.ModTime, err = time.Parse(time.DateTime, value)
		case "Flags":
			folder = strings.Contains(value, "IsDir")
		}
		if err != nil {
			return info, folder, fmt.Errorf("xrdfs stat said %q: %w", line, err)
		}
	}
	if info.Size < 0 {
		return info, folder, fmt.Errorf("xrdfs stat said no size")
	}
	return info, folder, nil
}

func (programs) checksum(ctx context.Context, f file, name string) (storage.Checksum, error) {
	text, err := f.xrdfs(ctx, "query", "checksum", name)
	return parseChecksum(text), err
}

func (programs) list(ctx context.Context, f file) ([]storage.Entry, error) {
	text, err := f.xrdfs(ctx, "ls", "-l", f.path)
	if err != nil {
		return nil, err
	}
	entries := parseList(text, f.path)
	if len(entries) > storage.MaxEntries {
		return nil, tooMany(f)
	}
	return entries, nil
}

// parseList reads what xrdfs ls -l prints: permissions, sizes and times, and at
// the end the absolute path, which may have spaces.
func parseList(text, folder string) []storage.Entry {
	var entries []storage.Entry
	before := " " + strings.TrimSuffix(folder, "/") + "/"
	for line := range strings.SplitSeq(text, "\n") {
		_, name, ok := strings.Cut(line, before)
		if ok && storage.IsElement(name) {
			entries = append(entries, storage.Entry{Name: name, Folder: strings.HasPrefix(line, "d")})
		}
	}
	return entries
}

func (programs) makeFolder(ctx context.Context, f file, name string) error {
	_, err := f.xrdfs(ctx, "mkdir", "-p", name)
	return err
}

func (programs) move(ctx context.Context, f file, from, to string) error {
	_, err := f.xrdfs(ctx, "mv", from, to)
	return err
}

func (programs) remove(ctx context.Context, f file, name string) error {
	_, err := f.xrdfs(ctx, "rm", name)
	return err
}

func (programs) removeFolder(ctx context.Context, f file) error {
	_, err := f.xrdfs(ctx, "rmdir", f.path)
	return err
}

func (s programs) read(ctx context.Context, f file, from int64) (io.ReadCloser, int64, error) {
	info, _, err := s.stat(ctx, f, f.path)
	if err != nil {
		return nil, 0, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	answered := storage.Asked(ctx)
	c, said := start(ctx, "xrdcp", "--nopbar", "--silent", f.url(f.path), "-")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		answered()
		cancel(err)
		return nil, 0, f.failed(context.Background(), "xrdcp", err, said)
	}
	r := &reading{ReadCloser: out, answered: answered, wait: func() error {
		if err := c.Wait(); err != nil || said.astray {
			return f.failed(ctx, "xrdcp", err, said)
		}
		return nil
	}}
	body := storage.Steady(ctx, cancel, r, f.pfn)
	if _, err := io.CopyN(io.Discard, body, from); err != nil { // xrdcp begins at the beginning
		return nil, 0, errors.Join(err, body.Close())
	}
	return body, info.Size, nil
}

// reading ends with the error of the client, which tells whether what came is
// all.
type reading struct {
	io.ReadCloser
	answered func() // that the server sends, or is not read any more
	wait     func() error
	done     bool
}

func (r *reading) Read(p []byte) (int, error) {
	n, err := r.ReadCloser.Read(p)
	r.answered()
	if err != nil && !r.done {
		r.done = true
		if failed := r.wait(); failed != nil {
			return n, failed
		}
	}
	return n, err
}

// Close ends the client; Steady has cancelled its context before.
func (r *reading) Close() error {
	r.answered()
	err := r.ReadCloser.Close()
	if !r.done {
		r.done = true
		_ = r.wait()
		return nil
	}
	if errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}

func (programs) write(ctx context.Context, f file, source io.ReaderAt, size int64, name string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, said := start(ctx, "xrdcp", "--nopbar", "--silent", "--path", "-", f.url(name))
	watched := storage.Watched(ctx, cancel, io.NewSectionReader(source, 0, size), f.pfn)
	defer watched.Close()
	c.Stdin = watched
	if err := c.Run(); err != nil || said.astray {
		return f.failed(ctx, "xrdcp", err, said)
	}
	return nil
}
