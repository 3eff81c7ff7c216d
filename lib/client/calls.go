package client

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"reflect"
	"strings"
	"time"
)

const (
	endOfStream  = 2         // the flag of the last message of a stream
	maxAnswer    = 512 << 20 // bytes
	maxRefusal   = 1 << 20   // bytes of an error
	takeoverWait = 250 * time.Millisecond
)

// call makes a call with one answer.
func call[Answer any](ctx context.Context, c *Client, procedure string, request any) (*Answer, error) {
	body, err := c.body(request)
	if err != nil {
		return nil, err
	}
	answer := new(Answer)
	err = c.untilTaken(ctx, procedure, request, func() error {
		ctx, cancel := context.WithTimeoutCause(ctx, c.timeOr(callTime), errSilent)
		defer cancel()
		response, err := c.post(ctx, procedure, "application/json", body)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		text, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		if err != nil {
			return c.cut(ctx, err)
		}
		if err := json.Unmarshal(text, answer); err != nil {
			return fmt.Errorf("the answer to %s: %w", procedure, err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, nil
}

// stream makes a call with many answers. Who leaves the loop, or ends ctx, ends the call. An error comes last.
func stream[Answer any](ctx context.Context, c *Client, procedure string, request any) iter.Seq2[*Answer, error] {
	return func(yield func(*Answer, error) bool) {
		body, err := c.body(request)
		if err != nil {
			yield(nil, err)
			return
		}
		begun := false
		err = c.untilTaken(ctx, procedure, request, func() error {
			err := c.read(ctx, procedure, body, func(text []byte) (more bool, err error) {
				answer := new(Answer)
				if err := json.Unmarshal(text, answer); err != nil {
					return false, fmt.Errorf("an answer to %s: %w", procedure, err)
				}
				begun = true
				return yield(answer, nil), nil
			})
			if begun && err != nil {
				return brokenOff{err} // what came may not come again
			}
			return err
		})
		if broken := (brokenOff{}); errors.As(err, &broken) {
			err = broken.error
		}
		if err != nil && !errors.Is(err, errLeft) {
			yield(nil, err)
		}
	}
}

// brokenOff is the error of a stream of which something was had. It has no code, and so is not tried again.
type brokenOff struct{ error }

// errLeft says that the caller wants no more of a stream.
var errLeft = errors.New("left")

// read passes the messages of a stream on, until one wants no more.
func (c *Client) read(
	ctx context.Context, procedure string, body []byte, pass func([]byte) (more bool, err error),
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	quiet := c.timeOr(silentTime)
	watch := time.AfterFunc(quiet, func() { cancel(errSilent) })
	defer watch.Stop()
	request := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(body)))
	response, err := c.post(ctx, procedure, "application/connect+json", append(request, body...))
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	for {
		var head [5]byte
		if _, err := io.ReadFull(response.Body, head[:]); err != nil {
			return c.cut(ctx, err)
		}
		size := binary.BigEndian.Uint32(head[1:])
		if size > maxAnswer {
			return c.unanswered(fmt.Errorf("an answer of %d bytes", size))
		}
		var message bytes.Buffer // grows with what comes, whatever the size says
		if _, err := io.CopyN(&message, response.Body, int64(size)); err != nil {
			return c.cut(ctx, err)
		}
		watch.Reset(quiet)
		if head[0]&endOfStream != 0 {
			return endError(message.Bytes())
		}
		more, err := pass(message.Bytes())
		if err != nil {
			return err
		}
		if !more {
			return errLeft
		}
	}
}

// errSilent says that the server took a call, and said nothing for too long.
var errSilent = errors.New("it says nothing")

// cut is the error of an answer that did not come to its end: the caller's, if that has ended ctx.
func (c *Client) cut(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if cause != nil && !errors.Is(cause, errSilent) {
		return cause
	}
	return c.unanswered(errors.Join(cause, err))
}

func endError(text []byte) error {
	var end struct {
		Error *Error `json:"error"`
	}
	if err := json.Unmarshal(text, &end); err != nil {
		return fmt.Errorf("the end of a stream: %w", err)
	}
	if end.Error != nil {
		return end.Error
	}
	return nil
}

// post begins a call. What a server refuses is an *Error.
func (c *Client) post(ctx context.Context, procedure, kind string, body []byte) (*http.Response, error) {
	// Where the request leads, the dialler knows.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+serverName+procedure, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Content-Type", kind)
	request.Header.Set("Connect-Protocol-Version", "1")
	if c.service != nil {
		request.Header.Set("Fairway-Launch", c.service.Launch)
		if c.service.Token != "" {
			request.Header.Set("Authorization", "Bearer "+c.service.Token)
		}
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, c.cut(ctx, err)
	}
	if response.StatusCode == http.StatusOK {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal))
	refusal := new(Error)
	if json.Unmarshal(text, refusal) != nil || refusal.Code == "" {
		return nil, &Error{Code: Unavailable, Message: fmt.Sprintf("the server answered %s: %.200s", response.Status, text)}
	}
	return nil, refusal
}

// body is the text of a request, with what the client adds to it.
func (c *Client) body(request any) ([]byte, error) {
	message := reflect.New(reflect.TypeOf(request).Elem()).Elem()
	if given := reflect.ValueOf(request); !given.IsNil() {
		message.Set(given.Elem()) // the caller's is not changed
	}
	if run := message.FieldByName("Run"); run.IsValid() && run.IsZero() {
		run.SetUint(uint64(c.run))
	}
	if submitted, ok := message.Addr().Interface().(*SubmitWorkflowRequest); ok && submitted.Key == "" {
		submitted.Key = "once-" + strings.ToLower(rand.Text()) // a submission that is repeated is known
	}
	return json.Marshal(message.Interface())
}

func (c *Client) timeOr(usual time.Duration) time.Duration {
	if c.standby() {
		return frozenTime
	}
	return usual
}

// untilTaken makes a call again where servers stand by and none takes it, until one does, or none has for a time.
// A stop of the server is for the one that is active.
func (c *Client) untilTaken(ctx context.Context, procedure string, request any, try func() error) error {
	began := time.Now()
	for {
		err := try()
		if !c.standby() || CodeOf(err) != Unavailable || time.Since(began) > takeoverTime {
			return err
		}
		if stop, ok := request.(*StopRequest); ok && (stop == nil || stop.Run == 0) && c.run == 0 {
			return err
		}
		select {
		case <-time.After(takeoverWait):
		case <-ctx.Done():
			return err
		}
	}
}
