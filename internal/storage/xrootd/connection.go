package xrootd

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"strings"
	"sync"
	"time"

	"fairway/internal/legible"
	"fairway/internal/storage"
)

// Requests of the protocol (XRootD 5) that are used here.
const (
	askQuery    = 3001
	askClose    = 3003
	askList     = 3004
	askProtocol = 3006
	askLogin    = 3007
	askMakeDir  = 3008
	askMove     = 3009
	askOpen     = 3010
	askRead     = 3013
	askRemove   = 3014
	askRemDir   = 3015
	askStat     = 3017
	askWrite    = 3019
)

// What a server answers.
const (
	answerOK       = 0
	answerMore     = 4000 // and another answer follows
	answerNotice   = 4001 // that was not asked for, or that was promised
	answerError    = 4003
	answerRedirect = 4004
	answerWait     = 4005
	answerPromise  = 4006 // the answer comes later, in a notice
	noticeAnswer   = 5008
)

// Bounds of what a server may say.
const (
	maxList      = 64 << 20    // bytes of the list of a folder
	maxAnswer    = 1 << 20     // of any other answer that is kept
	firstPart    = 64 << 10    // of an answer that is kept before more has come
	maxWait      = time.Minute // that a server asks for once
	dialTime     = 10 * time.Second
	firstPause   = 50 * time.Millisecond
	speaksFive   = 5     // what a client says of itself when it logs in
	takesNotices = 0x80  // else a server that computes many checksums has it ask again in 30 s
	version      = 0x520 // of the protocol that is spoken
)

// answerTime is how long a server may take to do what it was asked.
var answerTime = time.Minute

var errProtocol = errors.New("the server does not keep to the protocol")

type closed struct{ said string }

func (c *closed) Error() string { return "the server wants encryption, or to know who asks: " + c.said }

// Temporary is for [storage.Retry].
func (c *closed) Temporary() bool { return true }

type redirected struct{ address, opaque string }

func (r *redirected) Error() string { return "the server redirects to " + r.address }

// connection is a connection to one server. One goroutine at a time uses it. After
// an error that is no *Error and no *redirected it is of no use.
type connection struct {
	net    net.Conn
	in     *bufio.Reader
	server string // host and port
	stream uint16 // of the last request
	used   time.Time
}

// connect reaches a server. far refuses one at this machine.
func connect(ctx context.Context, address string, far bool) (*connection, error) {
	dialer := net.Dialer{Timeout: dialTime}
	if far {
		dialer.Control = storage.RefuseNear
	}
	defer storage.Asked(ctx)()
	dialed, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &connection{net: dialed, in: bufio.NewReaderSize(dialed, 64<<10), server: address}
	if err := c.greet(ctx); err != nil {
		return nil, errors.Join(err, dialed.Close())
	}
	return c, nil
}

// greet says who is there. A server that wants more than a name is one for the
// programs.
func (c *connection) greet(ctx context.Context) error {
	return c.during(ctx, answerTime, func() error {
		hello := binary.BigEndian.AppendUint32(make([]byte, 12), 4)
		hello = binary.BigEndian.AppendUint32(hello, 2012)
		asked := c.request(askProtocol, binary.BigEndian.AppendUint32(nil, version), nil)
		if _, err := c.net.Write(append(hello, asked...)); err != nil {
			return err
		}
		for range 2 { // the answers to both
			if _, err := c.answer(maxAnswer); err != nil {
				return loggingIn(err)
			}
		}
		name := userName()
		login := append(binary.BigEndian.AppendUint32(nil, uint32(os.Getpid())), name[:]...)
		login = append(login, 0, 0, speaksFive|takesNotices, 0)
		if _, err := c.net.Write(c.request(askLogin, login, nil)); err != nil {
			return err
		}
		session, err := c.answer(maxAnswer)
		if err != nil {
			return loggingIn(err)
		}
		if len(session) > 16 { // the identifier, and then what proves who one is
			return &closed{text(session[16:])}
		}
		return nil
	})
}

// loggingIn is the error of a server that refuses before anything was asked. One that is
// overloaded may take anybody later.
func loggingIn(err error) error {
	var told *Error
	if errors.As(err, &told) && !told.Temporary() {
		return &closed{told.Text}
	}
	return err
}

// userName is what servers write into their logs.
var userName = sync.OnceValue(func() (name [8]byte) {
	if known, err := user.Current(); err == nil {
		copy(name[:], known.Username)
	}
	return name
})

// during does something with the connection until ctx ends, or a time has passed.
func (c *connection) during(ctx context.Context, limit time.Duration, do func() error) error {
	if err := c.net.SetDeadline(time.Now().Add(limit)); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = c.net.SetDeadline(time.Unix(1, 0)) })
	err := do()
	if !stop() {
		return errors.Join(context.Cause(ctx), c.net.Close())
	}
	return err
}

// request is a request with its 16 bytes of parameters, which are filled up, and its
// data.
func (c *connection) request(number uint16, parameters []byte, data []byte) []byte {
	c.stream++
	frame := make([]byte, 4, 24+len(data))
	binary.BigEndian.PutUint16(frame, c.stream)
	binary.BigEndian.PutUint16(frame[2:], number)
	frame = append(frame, parameters...)
	frame = append(frame, make([]byte, 20-len(frame))...)
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(data)))
	return append(frame, data...)
}

// header reads how an answer begins. Notices that nobody asked for are skipped; what
// was promised is an answer as any other.
func (c *connection) header() (status uint16, size int, err error) {
	var head [8]byte
	for {
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return 0, 0, cut(err)
		}
		status, size = binary.BigEndian.Uint16(head[2:]), int(binary.BigEndian.Uint32(head[4:]))
		if status != answerNotice {
			return status, size, nil
		}
		var kind [4]byte
		if size < len(kind) {
			return 0, 0, errProtocol
		}
		if _, err := io.ReadFull(c.in, kind[:]); err != nil {
			return 0, 0, cut(err)
		}
		skip := size - len(kind)
		if binary.BigEndian.Uint32(kind[:]) == noticeAnswer {
			skip = 4
		}
		if _, err := c.in.Discard(skip); err != nil {
			return 0, 0, cut(err)
		}
	}
}

// cut is the error of a connection that ends where an answer is due.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// answer reads a whole answer of so many bytes at most.
func (c *connection) answer(most int) (whole []byte, err error) {
	for {
		status, size, err := c.header()
		if err != nil {
			return nil, err
		}
		if len(whole)+size > most || size < 0 {
			return nil, fmt.Errorf("%w: an answer of more than %d bytes", errProtocol, most)
		}
		before := len(whole)
		for read := 0; read < size; { // what a server only says that it sends takes no room
			part := min(size-read, max(firstPart, len(whole)))
			whole = append(whole, make([]byte, part)...)
			if _, err := io.ReadFull(c.in, whole[before+read:]); err != nil {
				return nil, cut(err)
			}
			read += part
		}
		switch status {
		case answerMore:
		case answerPromise: // says for how long, at most
			whole = whole[:before]
		default:
			return whole, refusal(status, whole[before:])
		}
	}
}

// waiting says that the server wants to be asked again.
type waiting struct{ after time.Duration }

func (w *waiting) Error() string {
	return fmt.Sprintf("the server wants to be asked again in %s", w.after)
}

// Temporary and RetryAfter are for [storage.Retry].
func (w *waiting) Temporary() bool { return true }

func (w *waiting) RetryAfter() time.Duration { return w.after }

// refusal is the error that an answer stands for.
func refusal(status uint16, body []byte) error {
	number := func() int32 {
		if len(body) < 4 {
			return 0
		}
		n := int32(binary.BigEndian.Uint32(body))
		body = body[4:]
		return n
	}
	switch status {
	case answerOK:
		return nil
	case answerError:
		code := number()
		return &Error{Code: int(code), Text: text(body)}
	case answerWait:
		return &waiting{min(time.Duration(max(number(), 0))*time.Second, maxWait)}
	case answerRedirect:
		port := number()
		return redirection(port, text(body))
	}
	return fmt.Errorf("%w: an answer of kind %d", errProtocol, status)
}

func text(body []byte) string {
	said, _, _ := bytes.Cut(body, []byte{0})
	said = said[:min(len(said), 2*storage.MaxSaid)]
	return legible.Line(strings.Join(strings.Fields(string(said)), " "), storage.MaxSaid)
}

// redirection reads where a server redirects to: a host with what is to be told
// there, or with a negative port a URL, which is followed nowhere.
func redirection(port int32, to string) error {
	if port < 0 {
		return errAstray
	}
	host, opaque, _ := strings.Cut(to, "?")
	opaque, _, _ = strings.Cut(opaque, "?") // what follows is for a login
	address := withPort(strings.Trim(host, "[]"), port)
	name, _, err := net.SplitHostPort(address)
	if err != nil || name == "" || strings.ContainsAny(host, "/@ ") || port > 65535 {
		return fmt.Errorf("%w: it redirects to %.100q", errProtocol, to)
	}
	return &redirected{address, opaque}
}

func withPort(host string, port int32) string {
	if port == 0 {
		return net.JoinHostPort(host, defaultPort)
	}
	return net.JoinHostPort(host, fmt.Sprint(port))
}

const defaultPort = "1094"

// ask sends a request and reads the answer, for which limit is the time. Where the
// server wants to be asked again it is, until limit has passed. A server says 30 s when it
// has too many checksums to compute (12 at once, as it comes), and has place again as soon
// as one is told: it is asked sooner.
func (c *connection) ask(
	ctx context.Context, limit time.Duration, number uint16, parameters, data []byte,
) (body []byte, err error) {
	most := maxAnswer
	if number == askList {
		most = maxList
	}
	begun := time.Now()
	for soon := firstPause; ; soon = min(2*soon, maxWait) {
		answered := storage.Asked(ctx)
		err = c.during(ctx, limit, func() error {
			if _, err := c.net.Write(c.request(number, parameters, data)); err != nil {
				return err
			}
			body, err = c.answer(most)
			return err
		})
		answered()
		var wait *waiting
		if !errors.As(err, &wait) || time.Since(begun) > limit {
			return body, err
		}
		if number == askQuery {
			wait.after = min(wait.after, soon)
		}
		if !pause(ctx, wait.after) {
			return nil, context.Cause(ctx)
		}
	}
}

func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// lasting reports whether after this error the connection is as good as before.
func lasting(err error) bool {
	var told *Error
	var elsewhere *redirected
	var wait *waiting
	return err == nil || errors.As(err, &told) || errors.As(err, &elsewhere) || errors.As(err, &wait) ||
		errors.Is(err, errAstray)
}
