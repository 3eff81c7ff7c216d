package share

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/zeebo/blake3"

	"fairway/internal/access"
	"fairway/internal/cache"
	"hash/adler32"
)

// Source is a server that has a file, with a ticket for it.
type Source struct {
	Address string
	Pin     string
	Epoch   uint64
	Ticket  []byte
}

// ErrUnserved is wrapped by errors after which a source is not to be tried again: it
// cannot be reached, is somebody else, or has sent something else.
var ErrUnserved = errors.New("the source is of no use")

// ErrRefused is wrapped by errors after which a source counts as one of no use if it goes on
// like that: it does not have the file, does not take the ticket, or does not answer.
var ErrRefused = errors.New("the source gives nothing")

// ErrPoor is wrapped by errors of a source that is busy, slower than [StallBytes] allows, or has broken off. It
// may be no fault of the source, and be better soon, so that it is avoided for a while only.
var ErrPoor = errors.New("the source serves badly")

// Proof is what the contents of a file must have; what is zero is not known. Without an adler32
// the hash alone is believed, and who sends other bytes has lied. With one, which the commit of an
// output has, both must be right, and if the hash alone is wrong, that may be the lie.
type Proof struct {
	Hash    cache.Hash
	Adler32 uint32
}

// Get brings a file from a source, to where the arrival is written, and returns its hash,
// which is right: it is that of the proof, or where that is not known the one that the
// origin has found. Where there is neither, it asks nobody.
func Get(
	ctx context.Context, from Source, origin *Source, i cache.Item, proof Proof, a *Arrival, path string,
) (got cache.Hash, err error) {
	if proof.Hash == (cache.Hash{}) && origin == nil {
		return got, fmt.Errorf("nobody could tell whether what %s sends is %s", from.Address, i.LFN)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	client := from.client()
	defer client.CloseIdleConnections()
	stalled := endSlow(cancel, i.Size)
	defer stalled.Stop()
	answer, err := from.ask(ctx, client, http.MethodGet, i.Ref)
	if err != nil {
		if cause := context.Cause(ctx); errors.Is(cause, ErrPoor) {
			err = cause
		}
		return got, err
	}
	defer answer.Body.Close()
	if size := answer.Header.Get(sizeHeader); size != strconv.FormatInt(i.Size, 10) {
		return got, fmt.Errorf("%w: it has %q bytes of %s instead of %d", ErrUnserved, size, i.LFN, i.Size)
	}
	out, err := a.Begin(path)
	if err != nil {
		return got, err
	}
	h, sum := blake3.New(), adler32.New()
	all := io.Writer(h)
	if proof.Adler32 != 0 {
		all = io.MultiWriter(h, sum)
	}
	if err = receive(ctx, &bounded{answer.Body, i.Size, 0, stalled}, out, a, all); err != nil {
		err = fmt.Errorf("%s: %w", from.Address, err)
	} else if proof.Adler32 != 0 && sum.Sum32() != proof.Adler32 {
		err = fmt.Errorf("%w: %s has sent other bytes of %s (checksum %08x instead of %08x)", ErrUnserved, from.Address,
			i.LFN, sum.Sum32(), proof.Adler32)
	} else if proof.Hash == (cache.Hash{}) {
		proof.Hash, err = origin.hashOf(ctx, i.Ref)
	}
	if got = cache.HashOf(h); err == nil && got != proof.Hash {
		err = fmt.Errorf("%s has sent other bytes of %s than somebody has told (BLAKE3 %x instead of %x)", from.Address,
			i.LFN, got, proof.Hash)
		if proof.Adler32 == 0 {
			err = fmt.Errorf("%w: %w", ErrUnserved, err)
		}
	}
	if err == nil {
		err = adorn(out, path, answer.Trailer)
	}
	if err != nil {
		_ = os.Remove(path)
		return cache.Hash{}, err
	}
	return got, nil
}

// endSlow ends what is got from a source, unless the timer is held back.
func endSlow(end context.CancelCauseFunc, size int64) *time.Timer {
	return time.AfterFunc(BeginTime+StallTime, func() {
		end(fmt.Errorf("%w: %d bytes are to come in each %v, and fewer came", ErrPoor, min(StallBytes, size), StallTime))
	})
}

func receive(ctx context.Context, body *bounded, out *os.File, a *Arrival, sum io.Writer) error {
	size := body.left
	got, err := a.Write(out, body, sum)
	switch {
	case err != nil && context.Cause(ctx) != nil:
		return context.Cause(ctx)
	case err == nil && got != size:
		return fmt.Errorf("%w: %d bytes came of %d: %w", ErrPoor, got, size, io.ErrUnexpectedEOF)
	}
	return err
}

// bounded is a body that gives so many bytes at most, and holds a timer back as long as enough come.
type bounded struct {
	body    io.Reader
	left    int64
	fresh   int64 // bytes since the timer was set
	stalled *time.Timer
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	if b.fresh += int64(n); b.fresh >= StallBytes {
		b.fresh = 0
		b.stalled.Reset(StallTime)
	}
	if b.left -= int64(n); b.left < 0 {
		return 0, fmt.Errorf("%w: it sends more bytes than the file has", ErrUnserved)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: %w", ErrPoor, err)
	}
	return n, err
}

// adorn gives a copy the permission to be executed and the time of its original.
func adorn(out *os.File, path string, told http.Header) error {
	mode, errMode := strconv.ParseUint(told.Get(modeHeader), 8, 9)
	modified, errModified := strconv.ParseInt(told.Get(modifiedHeader), 10, 64)
	if err := errors.Join(errMode, errModified); err != nil {
		return fmt.Errorf("what was sent is not complete: %w", err)
	}
	return errors.Join(out.Chmod(os.FileMode(mode)&^0o222|0o400), os.Chtimes(path, time.Time{}, time.Unix(0, modified)))
}

// hashOf asks what the hash of a file is, of the pilot that has read it from storage.
func (s *Source) hashOf(ctx context.Context, ref cache.Ref) (told cache.Hash, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, StallTime, fmt.Errorf("no answer within %v", StallTime))
	defer cancel()
	client := s.client()
	defer client.CloseIdleConnections()
	answer, err := s.ask(ctx, client, http.MethodHead, ref)
	if err != nil {
		return told, fmt.Errorf("the origin of the file: %w", hide(err))
	}
	_ = answer.Body.Close()
	text, err := hex.DecodeString(answer.Header.Get(hashHeader))
	if err != nil || len(text) != len(told) {
		return told, fmt.Errorf("the origin of the file tells %.100q, which is no hash", answer.Header.Get(hashHeader))
	}
	return cache.Hash(text), nil
}

// hide has an error of the origin not count against the source.
func hide(err error) error { return errors.New(err.Error()) }

func (s *Source) client() *http.Client {
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: DialTime}, Config: access.ClientTLS(s.Pin)}
	return &http.Client{
		Transport: &http.Transport{
			DialTLSContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				ctx, cancel := context.WithTimeout(ctx, DialTime)
				defer cancel()
				conn, err := dialer.DialContext(ctx, "tcp", s.Address)
				if err != nil {
					err = fmt.Errorf("%w: %w", ErrUnserved, err)
				}
				return conn, err
			},
			DialContext: func(context.Context, string, string) (net.Conn, error) {
				return nil, errors.New("a pilot is reached over TLS only")
			},
			DisableCompression: true, ResponseHeaderTimeout: BeginTime + StallTime,
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func (s *Source) ask(ctx context.Context, client *http.Client, method string, ref cache.Ref) (*http.Response, error) {
	query := url.Values{
		lfnKey: {ref.LFN}, versionKey: {strconv.FormatUint(uint64(ref.Version), 10)},
		tagKey: {strconv.FormatUint(ref.Tag, 16)},
	}
	r, err := http.NewRequestWithContext(ctx, method, "https://"+s.Address+filePath+"?"+query.Encode(), nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnserved, err)
	}
	r.Header.Set(epochHeader, strconv.FormatUint(s.Epoch, 10))
	r.Header.Set(ticketHeader, base64.StdEncoding.EncodeToString(s.Ticket))
	answer, err := client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer, nil
	}
	_ = answer.Body.Close()
	err = fmt.Errorf("%s answers %s", s.Address, answer.Status)
	if answer.StatusCode == http.StatusServiceUnavailable { // with which it says that it is busy
		return nil, fmt.Errorf("%w: %w", ErrPoor, err)
	}
	return nil, fmt.Errorf("%w: %w", ErrRefused, err)
}
