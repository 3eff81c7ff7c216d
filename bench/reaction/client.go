package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"fairway/lib/subprocess"
)

// run is what one server process showed.
type run struct {
	reactions []time.Duration
	rate      float64 // units of work per second
}

// server is a running server process.
type server struct{ *subprocess.Child }

func startServer(c serverConfig) (server, error) {
	child, err := subprocess.Start(subprocess.Self("-serve", c.mode, "-computing", strconv.Itoa(c.computing),
		"-checkpoints="+strconv.FormatBool(c.checkpoints), "-priorities", strconv.Itoa(c.priorities)))
	return server{child}, err
}

// work returns the units done so far and the server's clock.
func (s server) work() (units, at float64, err error) {
	text, err := s.Ask("")
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscan(text, &units, &at)
	return units, at, err
}

// conversation is how long a client sends messages, and how often.
type conversation struct {
	lasts  time.Duration
	pause  time.Duration // mean between messages
	random *rand.Rand
}

// measureOne runs one server for the time of a conversation, which is silent if the
// server is only to compute.
func measureOne(c serverConfig, talk conversation, silent bool) (r run, err error) {
	s, err := startServer(c)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, s.Stop()) }()
	text, err := s.Hear()
	if err != nil {
		return r, err
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return r, err
	}
	fd, err := dial(port)
	if err != nil {
		return r, err
	}
	defer unix.Close(fd)
	pause(200 * time.Millisecond)
	units, from, err := s.work()
	if err != nil {
		return r, err
	}
	if silent {
		pause(talk.lasts)
	} else if r.reactions, err = talk.hold(fd); err != nil {
		return r, err
	}
	after, until, err := s.work()
	r.rate = (after - units) / (until - from) * 1e9
	return r, err
}

// hold sends messages at random moments and times the answers.
func (c conversation) hold(fd int) ([]time.Duration, error) {
	var reactions []time.Duration
	for end := time.Now().Add(c.lasts); time.Now().Before(end); {
		pause(time.Duration(c.random.ExpFloat64() * float64(c.pause)))
		d, err := ask(fd)
		if err != nil {
			return nil, err
		}
		reactions = append(reactions, d)
	}
	return reactions, nil
}

// ask sends a message and returns how long it took until the answer came to the
// socket, as the kernel has stamped it. So it does not count how soon the client
// is given a processor to see the answer, where all processors are taken.
func ask(fd int) (time.Duration, error) {
	var b [8]byte
	var control [128]byte
	v := unix.Iovec{Base: &b[0], Len: uint64(len(b))}
	msg := unix.Msghdr{Iov: &v, Iovlen: 1, Control: &control[0], Controllen: uint64(len(control))}
	start := time.Now()
	if err := raw(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b))); err != nil {
		return 0, err
	}
	if err := raw(unix.SYS_RECVMSG, uintptr(fd), uintptr(unsafe.Pointer(&msg)), 0); err != nil {
		return 0, err
	}
	messages, err := unix.ParseSocketControlMessage(control[:msg.Controllen])
	if err != nil {
		return 0, err
	}
	for _, m := range messages {
		if m.Header.Type == unix.SO_TIMESTAMPNS {
			ts := (*unix.Timespec)(unsafe.Pointer(&m.Data[0]))
			return time.Unix(ts.Unix()).Sub(start.Round(0)), nil
		}
	}
	return 0, errors.New("the kernel has not stamped an answer")
}

// keepStamping has the kernel stamp what arrives for as long as the socket that
// it returns is open. Without it stamping would begin anew with each run, some
// time after it was asked for.
func keepStamping() (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	pause(time.Second)
	return fd, nil
}

// raw makes a system call behind the back of the Go scheduler, which would look
// after the client's thread fifty times a millisecond, on the processor time of
// the server that is measured.
func raw(call, a, b, c uintptr) error {
	for {
		if _, _, err := unix.RawSyscall(call, a, b, c); err == 0 {
			return nil
		} else if err != unix.EINTR {
			return err
		}
	}
}

func dial(port int) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	_ = unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, 1)
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPNS, 1); err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

// pause sleeps in the kernel; the client has nothing else to do.
func pause(d time.Duration) {
	ts := unix.NsecToTimespec(int64(d))
	_ = raw(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), uintptr(unsafe.Pointer(&ts)), 0)
}

// preferClient gives the client's thread a short time slice where the kernel
// knows that, so that it sends at the moments it means to.
func preferClient() {
	attr := unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Runtime: uint64(100 * time.Microsecond),
	}
	_ = unix.SchedSetAttr(0, &attr, 0)
}
