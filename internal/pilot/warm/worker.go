package warm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"fairway/internal/pilot/process"
)

// worker is one program, and those that replace it.
type worker struct {
	of         *Workers
	words, own []string
	used       uint64 // of the Workers, whose mutex guards it

	mu       sync.Mutex // guards what follows, and is held while a job is begun
	failures int        // in a row
	closed   bool
	runs     bool
	lead     process.Lead
	control  int      // the pilot's end of the socket
	said     *os.File // what the program has printed
	jobs     int
	size     int64 // bytes, after its first job
}

// maxSaid bounds what a worker prints itself, in bytes; then it is replaced.
const maxSaid = 1 << 20

func (k *worker) begin(job *Job) (process.Lead, error) {
	if k.closed {
		return process.Lead{}, errors.New("the pilot ends")
	}
	if k.runs && k.outgrown() {
		k.end()
	}
	if !k.runs {
		if err := k.start(); err != nil {
			return process.Lead{}, err
		}
	}
	pid, let, err := k.fork(job)
	if err != nil {
		return process.Lead{}, err
	}
	defer func() { _ = let.Close() }()
	lead, err := k.of.Tree.Adopt(k.lead, pid, job.Attempt, job.Dir)
	if err != nil {
		return process.Lead{}, err
	}
	if err := job.Box.Join(pid); err != nil {
		k.of.Log.Warn("a job is not in its group", "attempt", job.Attempt, "error", err)
	}
	k.jobs++
	if _, err := let.Write([]byte{1}); err != nil && !errors.Is(err, unix.EPIPE) {
		return lead, nil // it has ended, as its end will say
	}
	return lead, nil
}

func (k *worker) outgrown() bool {
	if k.jobs == 1 {
		k.size = k.lead.Resident()
	}
	if k.jobs%looked != 0 {
		return false
	}
	info, err := k.said.Stat()
	return k.lead.Resident() > k.size+Growth || err == nil && info.Size() > maxSaid
}

func (k *worker) start() (err error) {
	search := ""
	for _, entry := range k.own {
		if path, ok := strings.CutPrefix(entry, "PATH="); ok {
			search = path
		}
	}
	path, err := k.of.Find(k.words[0], search)
	if err != nil {
		return err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(ends[1]) }()
	null, err := os.Open(os.DevNull)
	if err != nil {
		_ = unix.Close(ends[0])
		return err
	}
	defer func() { _ = null.Close() }()
	argv, scripts, err := passed(k.words)
	defer func() {
		for _, script := range scripts {
			_ = script.Close()
		}
	}()
	if err != nil {
		_ = unix.Close(ends[0])
		return err
	}
	if k.said != nil {
		_ = k.said.Close()
	}
	if k.said, err = inMemory("said", nil); err != nil {
		_ = unix.Close(ends[0])
		return err
	}
	attr := k.of.attr(append(slices.Clone(k.own), "FAIRWAY_WORKER_PROGRAM="+path), null, k.said, ends[1], scripts)
	if k.lead, err = k.of.Tree.StartWorker(path, argv, attr); err != nil {
		_ = unix.Close(ends[0])
		return err
	}
	k.control, k.runs, k.jobs, k.size = ends[0], true, 0, 0
	return nil
}

// passed puts the paths of scripts, which are passed from descriptor 4 on, in the place of the words that
// stand for them. The caller closes the scripts, also with an error.
func passed(words []string) (argv []string, scripts []*os.File, err error) {
	argv = slices.Clone(words)
	for i, word := range argv {
		text := map[string][]byte{Script: python, scriptR: forR}[word]
		if text == nil {
			continue
		}
		script, err := inMemory("worker", text)
		if err != nil {
			return nil, scripts, err
		}
		argv[i] = fmt.Sprint("/proc/self/fd/", 4+len(scripts))
		scripts = append(scripts, script)
	}
	return argv, scripts, nil
}

// fork asks for a process, which waits until a byte is written to let.
func (k *worker) fork(job *Job) (pid int, let *os.File, err error) {
	request, err := inMemory("job", job.text())
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = request.Close() }()
	wait, let, err := os.Pipe()
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = wait.Close() }()
	files := []int{
		int(job.Files[0]), int(job.Files[1]), int(job.Files[2]), int(wait.Fd()), int(request.Fd()),
	}
	err = unix.Sendmsg(k.control, []byte{1}, unix.UnixRights(files...), nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
	if err == nil {
		pid, err = k.answer()
	}
	if err != nil {
		_ = let.Close()
		return 0, nil, err
	}
	return pid, let, nil
}

func (j *Job) text() []byte {
	texts := append([]string{j.Path, j.Dir, strconv.Itoa(os.Getpid()), strconv.Itoa(len(j.Argv))}, j.Argv...)
	return []byte(strings.Join(append(texts, j.Env...), "\x00") + "\x00")
}

// answer reads the number of the process that the worker has forked.
func (k *worker) answer() (int, error) {
	var line []byte
	limit := k.of.AnswerTime
	if k.jobs == 0 {
		limit = StartTime
	}
	for !bytes.HasSuffix(line, []byte("\n")) {
		if err := k.of.Tree.Readable(k.control, limit); err != nil {
			return 0, fmt.Errorf("it has not answered within %v", limit)
		}
		piece := make([]byte, 32)
		n, err := unix.Read(k.control, piece)
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil || n == 0 || len(line) > len(piece) {
			return 0, errors.New("it has ended")
		}
		line = append(line, piece[:n]...)
	}
	return strconv.Atoi(string(line[:len(line)-1]))
}

// reason is why no worker has begun a job: what the last one printed, or an error.
func (k *worker) reason(err error) error {
	if k.said != nil {
		text := make([]byte, process.TailBytes)
		info, failed := k.said.Stat()
		if failed == nil {
			n, _ := k.said.ReadAt(text, max(0, info.Size()-int64(len(text))))
			lines := strings.Split(strings.TrimSpace(string(text[:n])), "\n")
			if last := lines[len(lines)-1]; last != "" {
				return fmt.Errorf("its worker does not start: %s", last)
			}
		}
	}
	return fmt.Errorf("its worker does not start: %w", err)
}

// end ends the program, if it runs.
func (k *worker) end() {
	if !k.runs {
		return
	}
	k.runs = false
	_ = unix.Close(k.control)
	k.of.Tree.EndWorker(k.lead)
}

func (k *worker) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.end()
	if k.said != nil {
		_ = k.said.Close()
	}
}

// inMemory makes a file without a name that holds a text.
func inMemory(name string, text []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("file in memory: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if _, err := io.Copy(f, bytes.NewReader(text)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
