package xrootd

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"fairway/internal/storage"
)

// Bounds of what is kept and sent.
const (
	// IdleTime is how long a connection is kept that nobody uses.
	IdleTime     = 15 * time.Second
	maxIdle      = storage.DefaultTransfers // connections to a server that are kept
	maxRedirects = 16
	maxRead      = 1 << 30 // bytes that are asked for at once; the server sends them in pieces
	pieceSize    = 1 << 20 // bytes that are written at once
	maxPieces    = 8       // that are written before the first is acknowledged
	maxChecksums = 2       // that a server is asked for at once
)

// Options of requests, and flags of files.
const (
	openRead, openWrite = 0x10, 0x20
	openNew             = 0x08
	openMakePath        = 0x100
	openTell            = 0x400 // what the file is
	modeOfFile          = 0x1a4 // rw-r--r--
	modeOfFolder        = 0x1ed // rwxr-xr-x
	makePath            = 0x01
	listTell            = 0x02
	queryChecksum       = 3
	flagFolder          = 2
)

type protocol struct {
	mu       sync.Mutex // guards the rest
	idle     map[string][]*connection
	clearing bool                     // clear is going to be called
	asking   map[string]chan struct{} // for those who ask for checksums
	open     map[string]bool          // what servers take anybody; those that are not there have not been met
}

var _ speaker = (*protocol)(nil)

// isOpen tells whether a server takes anybody, which it finds out when it first meets
// the server.
func (p *protocol) isOpen(ctx context.Context, f file) (bool, error) {
	p.mu.Lock()
	open, ok := p.open[f.address]
	p.mu.Unlock()
	if ok {
		return open, nil
	}
	c, err := connect(ctx, f.address, false)
	if err != nil && !p.closed(f, err) {
		return false, f.named(ctx, err)
	}
	if err == nil {
		p.putBack(c)
		p.met(f, true)
	}
	return err == nil, nil
}

func (p *protocol) met(f file, open bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open == nil {
		p.open = map[string]bool{}
	}
	p.open[f.address] = open
}

// closed takes note of a server that is not for everybody, or that redirects to such a
// server.
func (p *protocol) closed(f file, err error) bool {
	if _, ok := errors.AsType[*closed](err); !ok {
		return false
	}
	p.met(f, false)
	return true
}

// take gives a connection to a server; kept says that it was used before.
func (p *protocol) take(ctx context.Context, address string, far bool) (c *connection, reused bool, err error) {
	p.mu.Lock()
	if waiting := p.idle[address]; len(waiting) > 0 {
		c = waiting[len(waiting)-1]
		p.idle[address] = waiting[:len(waiting)-1]
	}
	p.mu.Unlock()
	if c != nil && far { // it may have been made for a file that is here
		if err := storage.RefuseNear("tcp", c.net.RemoteAddr().String(), nil); err != nil {
			p.putBack(c)
			return nil, false, err
		}
	}
	if c != nil {
		return c, true, nil
	}
	c, err = connect(ctx, address, far)
	return c, false, err
}

// putBack keeps a connection for the next that wants one.
func (p *protocol) putBack(c *connection) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.idle[c.server]) >= maxIdle {
		_ = c.net.Close()
		return
	}
	if p.idle == nil {
		p.idle = map[string][]*connection{}
	}
	c.used = time.Now()
	p.idle[c.server] = append(p.idle[c.server], c)
	if !p.clearing {
		p.clearing = true
		time.AfterFunc(IdleTime, p.clear)
	}
}

// clear closes the connections that nobody has used for a while.
func (p *protocol) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clearing = false
	for address, waiting := range p.idle {
		waiting = slices.DeleteFunc(waiting, func(c *connection) bool {
			old := time.Since(c.used) >= IdleTime
			if old {
				_ = c.net.Close()
			}
			return old
		})
		p.clearing = p.clearing || len(waiting) > 0
		if p.idle[address] = waiting; len(waiting) == 0 {
			delete(p.idle, address)
		}
	}
	if p.clearing {
		time.AfterFunc(IdleTime, p.clear)
	}
}

// forget closes the connections to a server that has closed one of them.
func (p *protocol) forget(address string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.idle[address] {
		_ = c.net.Close()
	}
	delete(p.idle, address)
}

// servers are those to which there are connections that nobody uses.
func (p *protocol) servers() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(maps.Keys(p.idle))
}

type question struct {
	number     uint16
	parameters []byte
	data       func(opaque string) []byte // given what a server that redirects wants told
	once       bool                       // asking twice is not the same as asking once
	limit      time.Duration              // zero: answerTime
}

func about(name string) func(string) []byte {
	return func(opaque string) []byte { return []byte(withOpaque(name, opaque)) }
}

func withOpaque(name, opaque string) string {
	if opaque == "" {
		return name
	}
	return name + "?" + opaque
}

// ask asks the server of the file, or those that it redirects to.
func (p *protocol) ask(ctx context.Context, f file, q question) ([]byte, error) {
	body, c, err := p.exchange(ctx, f, q)
	if err == nil {
		p.putBack(c)
	}
	return body, err
}

func (p *protocol) exchange(ctx context.Context, f file, q question) ([]byte, *connection, error) {
	if q.limit == 0 {
		q.limit = answerTime
	}
	address, opaque := f.address, ""
	for range maxRedirects {
		host, _, _ := net.SplitHostPort(f.address)
		c, kept, err := p.take(ctx, address, address != f.address && !storage.OnThisMachine(host))
		if err != nil {
			p.closed(f, err)
			return nil, nil, f.named(ctx, err)
		}
		body, err := c.ask(ctx, q.limit, q.number, q.parameters, q.data(opaque))
		if !lasting(err) {
			_ = c.net.Close()
			if kept && !q.once && ctx.Err() == nil {
				p.forget(address)
				continue
			}
			return nil, nil, f.named(ctx, err)
		}
		if err == nil {
			return body, c, nil
		}
		p.putBack(c)
		var elsewhere *redirected
		if !errors.As(err, &elsewhere) {
			return nil, nil, f.named(ctx, err)
		}
		address, opaque = elsewhere.address, elsewhere.opaque
	}
	return nil, nil, fmt.Errorf("%s: the server redirects more than %d times", f.pfn, maxRedirects)
}

func (f file) named(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var told *Error
	if errors.As(err, &told) && told.PFN == "" {
		told.PFN, told.Program = f.pfn, "the server answered"
		return told
	}
	return fmt.Errorf("%s: %w", f.pfn, err)
}

func (p *protocol) stat(ctx context.Context, f file, name string) (info storage.Info, folder bool, err error) {
	body, err := p.ask(ctx, f, question{number: askStat, data: about(name)})
	if err != nil {
		return info, false, err
	}
	info, folder, err = parseInfo(text(body))
	if err != nil {
		err = f.named(ctx, err)
	}
	return info, folder, err
}

// parseInfo reads what a server tells of a file: identifier, size, flags, time, and
// what later versions add.
func parseInfo(told string) (info storage.Info, folder bool, err error) {
	words := strings.Fields(told)
	if len(words) < 4 {
		return info, false, fmt.Errorf("%w: it tells of a file %q", errProtocol, told)
	}
	size, errSize := strconv.ParseInt(words[1], 10, 64)
	flags, errFlags := strconv.ParseInt(words[2], 10, 64)
	modified, errTime := strconv.ParseInt(words[3], 10, 64)
	if err := errors.Join(errSize, errFlags, errTime); err != nil || size < 0 {
		return info, false, fmt.Errorf("%w: it tells of a file %q", errProtocol, told)
	}
	return storage.Info{Size: size, ModTime: time.Unix(modified, 0).UTC()}, flags&flagFolder != 0, nil
}

func (p *protocol) checksum(ctx context.Context, f file, name string) (storage.Checksum, error) {
	asking := p.checksums(f)
	select {
	case asking <- struct{}{}:
	case <-ctx.Done():
		return storage.Checksum{}, context.Cause(ctx)
	}
	defer func() { <-asking }()
	body, err := p.ask(ctx, f, question{
		number: askQuery, parameters: []byte{0, queryChecksum}, data: about(name), limit: QueryTimeout,
	})
	return parseChecksum(text(body)), err
}

func (p *protocol) checksums(f file) chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asking == nil {
		p.asking = map[string]chan struct{}{}
	}
	if p.asking[f.address] == nil {
		p.asking[f.address] = make(chan struct{}, maxChecksums)
	}
	return p.asking[f.address]
}

func (p *protocol) list(ctx context.Context, f file) ([]storage.Entry, error) {
	parameters := make([]byte, 16)
	parameters[15] = listTell
	body, err := p.ask(ctx, f, question{number: askList, parameters: parameters, data: about(f.path)})
	if err != nil {
		return nil, err
	}
	told := bytes.TrimRight(body, "\x00")
	if bytes.Count(told, []byte{'\n'}) > 2*storage.MaxEntries {
		return nil, tooMany(f)
	}
	entries, err := parseEntries(string(told))
	if err != nil {
		err = f.named(ctx, err)
	}
	return entries, err
}

func tooMany(f file) error {
	return &storage.ListingError{PFN: f.pfn, Why: fmt.Sprintf("more than %d names (MaxEntries)", storage.MaxEntries)}
}

// parseEntries reads a list in which a line that tells of it follows each name. It
// begins with "." and zeros.
func parseEntries(told string) (entries []storage.Entry, err error) {
	lines := strings.Split(strings.TrimSuffix(told, "\n"), "\n")
	if len(lines) < 2 || lines[0] != "." {
		if told == "" {
			return nil, nil
		}
		return nil, fmt.Errorf("%w: it lists names only", errProtocol)
	}
	for lines = lines[2:]; len(lines) > 1; lines = lines[2:] {
		_, folder, err := parseInfo(lines[1])
		if err != nil {
			return nil, err
		}
		if storage.IsElement(lines[0]) {
			entries = append(entries, storage.Entry{Name: lines[0], Folder: folder})
		}
	}
	return entries, nil
}

func (p *protocol) makeFolder(ctx context.Context, f file, name string) error {
	parameters := make([]byte, 16)
	parameters[0] = makePath
	binary.BigEndian.PutUint16(parameters[14:], modeOfFolder)
	_, err := p.ask(ctx, f, question{number: askMakeDir, parameters: parameters, data: about(name)})
	return err
}

func (p *protocol) move(ctx context.Context, f file, from, to string) error {
	parameters := make([]byte, 16)
	data := func(opaque string) []byte {
		first := withOpaque(from, opaque)
		binary.BigEndian.PutUint16(parameters[14:], uint16(len(first)))
		return []byte(first + " " + withOpaque(to, opaque))
	}
	_, err := p.ask(ctx, f, question{number: askMove, parameters: parameters, data: data, once: true})
	return err
}

func (p *protocol) remove(ctx context.Context, f file, name string) error {
	_, err := p.ask(ctx, f, question{number: askRemove, data: about(name), once: true})
	return err
}

func (p *protocol) removeFolder(ctx context.Context, f file) error {
	_, err := p.ask(ctx, f, question{number: askRemDir, data: about(f.path), once: true})
	return err
}

// opened is a file that a server has opened, on the connection that it is good for.
type opened struct {
	*connection
	p      *protocol
	handle []byte
	info   storage.Info
}

func (p *protocol) openFile(ctx context.Context, f file, name string, mode, options uint16) (*opened, error) {
	parameters := binary.BigEndian.AppendUint16(nil, mode)
	parameters = binary.BigEndian.AppendUint16(parameters, options|openTell)
	body, c, err := p.exchange(ctx, f, question{
		number: askOpen, parameters: parameters, data: about(name), once: options&openNew != 0,
	})
	if err != nil {
		return nil, err
	}
	if len(body) < 12 { // the handle, and eight bytes on compression
		_ = c.net.Close()
		return nil, f.named(ctx, fmt.Errorf("%w: it opens a file and gives no handle", errProtocol))
	}
	info, _, err := parseInfo(text(body[12:]))
	if err != nil {
		_ = c.net.Close()
		return nil, f.named(ctx, err)
	}
	return &opened{c, p, body[:4], info}, nil
}

func (o *opened) close(ctx context.Context) error {
	_, err := o.ask(ctx, answerTime, askClose, o.handle, nil)
	if lasting(err) {
		o.p.putBack(o.connection)
	} else {
		_ = o.net.Close()
	}
	return err
}

func (p *protocol) read(ctx context.Context, f file, from int64) (io.ReadCloser, int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	o, err := p.openFile(ctx, f, f.path, 0, openRead)
	if err == nil {
		err = o.net.SetDeadline(time.Time{})
	}
	if err != nil {
		cancel(err)
		return nil, 0, err
	}
	r := &receiving{opened: o, ctx: ctx, f: f, at: from}
	r.stop = context.AfterFunc(ctx, func() { _ = o.net.SetDeadline(time.Unix(1, 0)) })
	return storage.Steady(ctx, cancel, r, f.pfn), o.info.Size, nil
}

type receiving struct {
	*opened
	ctx  context.Context
	f    file
	stop func() bool

	at    int64 // in the file
	piece int   // bytes of this piece that are to come
	asked int64 // bytes that are to come until something is asked again, with this piece
	ended error
}

func (r *receiving) Read(p []byte) (n int, err error) {
	if r.ended != nil {
		return 0, r.ended
	}
	for r.piece == 0 && err == nil && r.ended == nil {
		if r.at >= r.info.Size {
			return 0, r.finish()
		}
		err = r.next()
	}
	if err == nil {
		n, err = r.in.Read(p[:min(len(p), r.piece)])
		r.at, r.piece, r.asked = r.at+int64(n), r.piece-n, r.asked-int64(n)
	}
	if err != nil {
		_ = r.net.Close()
		r.stop()
		r.ended = r.f.named(r.ctx, cut(err))
	}
	return n, r.ended
}

// next asks for more if all was sent that was asked for, and reads how the next piece
// begins.
func (r *receiving) next() error {
	if r.asked == 0 {
		r.asked = min(r.info.Size-r.at, maxRead)
		parameters := binary.BigEndian.AppendUint64(slices.Clone(r.handle), uint64(r.at))
		parameters = binary.BigEndian.AppendUint32(parameters, uint32(r.asked))
		if _, err := r.net.Write(r.request(askRead, parameters, nil)); err != nil {
			return err
		}
	}
	answered := storage.Asked(r.ctx)
	status, size, err := r.header()
	answered()
	if err != nil {
		return err
	}
	if status != answerOK && status != answerMore {
		body := make([]byte, min(size, maxAnswer))
		if _, err := io.ReadFull(r.in, body); err != nil {
			return err
		}
		return refusal(status, body)
	}
	if int64(size) > r.asked || size < 0 {
		return fmt.Errorf("%w: it sends more than it was asked for", errProtocol)
	}
	if status == answerOK && int64(size) < r.asked {
		return io.ErrUnexpectedEOF // the file has become shorter
	}
	r.piece = size
	return nil
}

// finish gives the connection back; the error is io.EOF if all went well.
func (r *receiving) finish() error {
	r.ended = io.EOF
	if !r.stop() {
		r.ended = r.f.named(r.ctx, r.net.Close())
	} else if err := r.close(r.ctx); err != nil {
		r.ended = r.f.named(r.ctx, err)
	}
	return r.ended
}

// Close is called when Read has ended, or nobody wants more.
func (r *receiving) Close() error {
	if r.ended == nil {
		r.ended = fs.ErrClosed
		r.stop()
		_ = r.net.Close()
	}
	return nil
}

func (p *protocol) write(ctx context.Context, f file, source io.ReaderAt, size int64, name string) error {
	o, err := p.openFile(ctx, f, name, modeOfFile, openNew|openWrite|openMakePath)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { _ = o.net.SetDeadline(time.Unix(1, 0)) })
	err = o.send(ctx, source, size)
	if !stop() || !lasting(err) {
		_ = o.net.Close()
		return f.named(ctx, err)
	}
	// Also after a refusal: what the server has open takes its room after it was removed.
	if err = cmp.Or(err, o.close(ctx)); err != nil {
		return f.named(ctx, err)
	}
	return nil
}

// send writes what source has, in pieces. Several are under way before the first is
// acknowledged, so that a distant server is kept busy. After a refusal no more are sent, and the
// answers to those under way are taken.
func (o *opened) send(ctx context.Context, source io.ReaderAt, size int64) (refused error) {
	piece := make([]byte, min(size, pieceSize))
	underWay := 0
	for at := int64(0); at < size || underWay > 0; {
		if at == size || underWay == maxPieces {
			if err := o.soon(ctx); err != nil {
				return err
			}
			if _, err := o.answer(maxAnswer); !lasting(err) {
				return err
			} else if err != nil {
				at, refused = size, cmp.Or(refused, err)
			}
			underWay--
			continue
		}
		part := piece[:min(size-at, pieceSize)]
		if n, err := source.ReadAt(part, at); n < len(part) {
			return err
		}
		parameters := binary.BigEndian.AppendUint64(slices.Clone(o.handle), uint64(at))
		if err := o.sendPiece(ctx, o.request(askWrite, parameters, nil), part); err != nil {
			return err
		}
		at += int64(len(part))
		underWay++
	}
	return refused
}

// soon gives the server as long as a transfer may stand still.
func (o *opened) soon(ctx context.Context) error {
	err := o.net.SetDeadline(time.Now().Add(storage.StallTime))
	if ctx.Err() != nil {
		return context.Cause(ctx) // which has ended the time before
	}
	return err
}

func (o *opened) sendPiece(ctx context.Context, head, part []byte) error {
	binary.BigEndian.PutUint32(head[20:], uint32(len(part)))
	if err := o.soon(ctx); err != nil {
		return err
	}
	together := net.Buffers{head, part}
	_, err := together.WriteTo(o.net)
	return err
}
