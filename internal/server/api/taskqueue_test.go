package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/server/loop"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// A pilot of another version understands at least that it is to leave.
func TestAnOlderPilotIsToldToLeave(t *testing.T) {
	a := otherProtocol(&wire.SyncRequest{Seq: 4, LastAnswer: 1 << 33})
	if !a.GetLeaveNow() || a.GetNumber() <= 1<<33 || a.GetSeen() != 4 || !strings.Contains(a.GetWhy(), "version 0") {
		t.Error(a)
	}
}

// members are servers that stand by.
type members struct {
	term, number uint64
	followed     int
}

func (m *members) Term() uint64                  { return m.term }
func (m *members) Addresses() ([]string, uint64) { return []string{"a:1", "b:1"}, m.number }
func (m *members) Followed()                     { m.followed++ }

// A pilot that has seen a later term is refused by the server of an earlier one, and others are told where all
// servers are when they do not know it.
func TestPilotsOfAServerThatMayBeFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		seen, known uint64
		refused     bool
		told        bool
	}{
		"of this term":                   {4, 7, false, false},
		"of an earlier term":             {3, 7, false, false},
		"of a later term":                {5, 7, true, false},
		"that knows other servers":       {4, 6, false, true},
		"that knows servers to come":     {4, 8, false, true},
		"a later term and other servers": {5, 6, true, false},
	} {
		m := &members{term: 4, number: 7}
		q := &TaskQueue{Members: m}
		message := &wire.SyncRequest{Term: c.seen, ServersKnown: c.known}
		_, early := q.tell(message, nil)
		answer, err := q.tell(message, new(wire.SyncAnswer))
		if (err != nil) != c.refused || (early != nil) != c.refused || m.followed > 0 != c.refused {
			t.Errorf("%s: refused by %v, then %v, followed %d", name, early, err, m.followed)
		}
		if c.refused {
			if answer != nil || connect.CodeOf(err) != connect.CodeUnavailable {
				t.Errorf("%s: %v, %v", name, answer, err)
			}
			continue
		}
		if told := len(answer.GetServers()) == 2 && answer.GetServersNumber() == 7; told != c.told || answer.GetTerm() != 4 {
			t.Errorf("%s: %v", name, answer)
		}
	}
}

// A client decides by the code of an error whether it tries again.
func TestErrorsHaveTheCodesThatClientsDecideBy(t *testing.T) {
	said := connect.NewError(connect.CodeNotFound, errors.New("none"))
	for _, c := range []struct {
		err  error
		want connect.Code
	}{
		{said, connect.CodeNotFound}, {fmt.Errorf("asking: %w", said), connect.CodeNotFound},
		{fmt.Errorf("asking: %w", loop.ErrReloaded), connect.CodeUnavailable}, {loop.ErrEnded, connect.CodeUnavailable},
		{fmt.Errorf("asking: %w", taskqueue.ErrRefused), connect.CodeInvalidArgument},
		{context.Canceled, connect.CodeCanceled}, {context.DeadlineExceeded, connect.CodeDeadlineExceeded},
		{errors.New("disk"), connect.CodeInternal},
	} {
		if got := connect.CodeOf(rpcError(c.err)); got != c.want {
			t.Errorf("%v has code %v; want %v", c.err, got, c.want)
		}
	}
	if rpcError(nil) != nil {
		t.Error("nothing is an error")
	}
}
