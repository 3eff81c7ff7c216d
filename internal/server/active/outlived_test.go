package active

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/store"
	"fairway/internal/store/storetest"
	"fairway/lib/sched"
)

// A server that was frozen for longer than its lease says nothing of what it knew: neither that there is no such run,
// nor that a token is unknown, nor what it had computed before.
func TestAServerWhoseLeaseIsOverSaysNothing(t *testing.T) {
	m, err := store.JoinPostgres(t.Context(), storetest.Postgres(t).Address(), "me", store.Reached{Host: "a"},
		store.MinLease, sched.Default())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Leave()
	records, err := m.Await(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer records.Close()
	role := Role{Seat: byDatabase{m}}
	asks := func(answer connect.AnyResponse, failed error) error {
		calls := Calls{role, func() error { return nil }}
		_, err := calls.WrapUnary(func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
			return answer, failed
		})(t.Context(), nil)
		return err
	}
	page := func() int {
		w := httptest.NewRecorder()
		role.WhileCurrent(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/runs/7", nil))
		return w.Code
	}
	noRun := connect.NewError(connect.CodeNotFound, errors.New("there is no run 7"))
	if err := errors.Join(m.Beat(t.Context()), asks(nil, nil)); err != nil {
		t.Error("while it is the active one:", err)
	}
	if err := asks(nil, noRun); !errors.Is(err, noRun) {
		t.Error("while it is the active one:", err)
	}
	for m.Current() {
		if err := sched.Default().Sleep(t.Context(), m.BeatTime()); err != nil {
			t.Fatal(err)
		}
	}
	for _, failed := range []error{nil, noRun} {
		if err := asks(connect.NewResponse(new(struct{})), failed); connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("its lease is over, and of %v it says %v", failed, err)
		}
	}
	if code := page(); code != http.StatusServiceUnavailable {
		t.Error("its lease is over, and a page has the status", code)
	}
	if !role.Outlived() {
		t.Error("its lease is over, and it is ready")
	}
}
