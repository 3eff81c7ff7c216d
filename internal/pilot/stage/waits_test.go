package stage

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"fairway/internal/cache"
	"fairway/internal/share"
	"fairway/internal/storage"
	"fairway/internal/wire"
	"fairway/lib/sched"
)

// The TaskQueue is told of an input that does not come at once, from where it comes and how far it is, and of
// servers that are away; not of what has come.
func TestWhatIsWaitedForIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		woken := make(chan struct{}, 9)
		ws := Waits{Wake: func() { woken <- struct{}{} }}
		i := &input{Item: cache.Item{Ref: cache.Ref{LFN: "in"}, Size: 20}}
		told := func() *wire.SyncRequest {
			m := new(wire.SyncRequest)
			ws.Carry(m)
			return m
		}
		end := ws.begin(7, i)
		if m := told(); len(m.Waiting) > 0 || ws.Some() {
			t.Errorf("told at once: %v", m)
		}
		<-woken
		a := share.NewArrivals(sched.Default()).Add(i.Item)
		ws.from(i, &wire.Source{Pilot: "p"}, a)
		w := told().GetWaiting()
		if len(w) != 1 || w[0].GetAttempt() != 7 || w[0].GetLfn() != "in" || w[0].GetSource() != "p" ||
			w[0].GetMilliseconds() != WaitTold.Milliseconds() || !ws.Some() {
			t.Errorf("told: %v", w)
		}
		i.pfn = "https://user@se:1/file?secret"
		ctx, cancel := context.WithCancelCause(ws.fromStorage(t.Context(), i))
		body := storage.Steady(ctx, cancel, io.NopCloser(strings.NewReader("come")), i.pfn)
		if _, err := io.ReadAll(body); err != nil || body.Close() != nil {
			t.Error(err)
		}
		if w := told().GetWaiting(); len(w) != 1 || w[0].GetSource() != "https://se:1" || w[0].GetBytes() != 4 {
			t.Errorf("of storage is told: %v", w)
		}
		end()
		ws.Away("https://user@se:1/file?secret", errors.New("connection refused"))
		<-woken
		m := told()
		if len(m.Waiting) > 0 || len(m.Away) != 1 || m.Away[0].Server != "https://se:1" {
			t.Errorf("told: %v", m)
		}
		over := time.NewTimer(awayTold + 1)
		<-over.C
		if m := told(); len(m.Away) > 0 || ws.Some() {
			t.Errorf("told of a server that has come back: %v", m)
		}
	})
}
