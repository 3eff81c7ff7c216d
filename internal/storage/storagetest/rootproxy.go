package storagetest

import (
	"encoding/binary"
	"io"
	"net"
	"sync"
	"testing"
)

// RootFault is what happens to one connection of the protocol of XRootD. What it
// leaves out does not happen.
type RootFault struct {
	// CutAnswers and CutRequests break the connection when so many bytes have passed
	// from the server or to it. Zero: never.
	CutAnswers, CutRequests int
	// FlipAnswers changes the last byte of each answer of more than 1,000 bytes.
	FlipAnswers bool
	// Instead gives the answer to a request with this number; nil passes it on.
	Instead func(request uint16) (status uint16, body []byte, ok bool)
}

// Numbers of the protocol.
const (
	RootOpen     = 3010
	RootWrite    = 3019
	rootRedirect = 4004
	rootError    = 4003
	rootStatus   = 4007

	rootHello   = 20 // bytes, that a client begins with
	rootRequest = 24 // header of a request
	rootAnswer  = 8  // header of an answer
)

// RootRedirection is the answer that sends a client to another server, or with a
// negative port to a URL.
func RootRedirection(port int32, to string) (status uint16, body []byte, ok bool) {
	return rootRedirect, append(binary.BigEndian.AppendUint32(nil, uint32(port)), to...), true
}

// RootError is the answer that refuses a request.
func RootError(code uint32, text string) (status uint16, body []byte, ok bool) {
	return rootError, append(binary.BigEndian.AppendUint32(nil, code), text+"\x00"...), true
}

// RootProxy stands in front of an XRootD server, and does to connections what it is
// told.
type RootProxy struct {
	Address string

	mu    sync.Mutex // guards the rest
	fault RootFault
	left  int
}

// Do has a fault happen to the next connections; to all where times is negative.
func (p *RootProxy) Do(times int, fault RootFault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.left, p.fault = times, fault
}

func (p *RootProxy) next() RootFault {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		return RootFault{}
	}
	p.left--
	return p.fault
}

// BeforeRoot starts a proxy in front of a server.
func BeforeRoot(t *testing.T, server string) *RootProxy {
	t.Helper()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &RootProxy{Address: l.Addr().String()}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			serving.Go(func() { passRoot(client, server, p.next()) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		serving.Wait()
	})
	return p
}

// passRoot carries one connection until an end closes it or it is cut.
func passRoot(client net.Conn, address string, fault RootFault) {
	defer client.Close()
	server, err := net.Dial("tcp4", address)
	if err != nil {
		return
	}
	defer server.Close()
	var answering sync.Mutex // both the server and Instead answer
	toClient := limitWriter(client, fault.CutAnswers)
	var passing sync.WaitGroup
	passing.Go(func() {
		defer client.Close()
		for {
			frame, err := readFrame(server, rootAnswer)
			if err != nil {
				return
			}
			if fault.FlipAnswers && len(frame) > 1000 {
				frame[len(frame)-1] ^= 1
			}
			answering.Lock()
			_, err = toClient.Write(frame)
			answering.Unlock()
			if err != nil {
				return
			}
		}
	})
	passing.Go(func() {
		defer server.Close()
		toServer := limitWriter(server, fault.CutRequests)
		if _, err := io.CopyN(toServer, client, rootHello); err != nil {
			return
		}
		for {
			frame, err := readFrame(client, rootRequest)
			if err != nil {
				return
			}
			if fault.Instead != nil {
				if status, body, ok := fault.Instead(binary.BigEndian.Uint16(frame[2:])); ok {
					answer := binary.BigEndian.AppendUint16(append([]byte{}, frame[:2]...), status)
					answer = append(binary.BigEndian.AppendUint32(answer, uint32(len(body))), body...)
					answering.Lock()
					_, err = client.Write(answer)
					answering.Unlock()
					if err != nil {
						return
					}
					continue
				}
			}
			if _, err := toServer.Write(frame); err != nil {
				return
			}
		}
	})
	passing.Wait()
}

// readFrame reads a header, whose last four bytes say how much follows, and that.
func readFrame(from io.Reader, header int) ([]byte, error) {
	frame := make([]byte, header)
	if _, err := io.ReadFull(from, frame); err != nil {
		return nil, err
	}
	frame, err := more(from, frame, binary.BigEndian.Uint32(frame[header-4:]))
	if err == nil && header == rootAnswer && binary.BigEndian.Uint16(frame[2:]) == rootStatus {
		return more(from, frame, binary.BigEndian.Uint32(frame[rootAnswer+12:])) // pages come behind such an answer
	}
	return frame, err
}

func more(from io.Reader, frame []byte, size uint32) ([]byte, error) {
	if size > 64<<20 {
		return frame, io.ErrNoProgress
	}
	before := len(frame)
	frame = append(frame, make([]byte, size)...)
	_, err := io.ReadFull(from, frame[before:])
	return frame, err
}

// limitWriter takes so many bytes, and then breaks; any number where that is zero.
func limitWriter(to io.Writer, most int) io.Writer {
	if most == 0 {
		return to
	}
	return writing(func(p []byte) (int, error) {
		n, err := to.Write(p[:min(len(p), most)])
		if most -= n; err == nil && most == 0 {
			err = io.ErrClosedPipe
		}
		return n, err
	})
}

type writing func([]byte) (int, error)

func (w writing) Write(p []byte) (int, error) { return w(p) }
