package server

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"

	"fairway/internal/server/api"
	"fairway/internal/wire"
	"fairway/test/files"
)

// Each call names the run that it is about. One that is about another run is refused and
// changes nothing, whether a server runs or not: a number of a job means another job
// there.
func TestNoCallIsTakenForAnotherRun(t *testing.T) {
	root := files.Folder(t, threeTexts)
	var once sync.Once
	r := newRun(t, root, twoSteps, func(a *wire.Assignment, read func(string) string) (map[string]string, int) {
		once.Do(func() { callForAnotherRun(t, root, true) })
		return twoStepsScript(a, read)
	})
	r.mustSucceed()
	callForAnotherRun(t, root, false)
	if got := r.result("joined.txt"); got != "ONE TWO THREE " {
		t.Errorf("got %q", got)
	}
}

// callForAnotherRun makes each call that there is.
func callForAnotherRun(t *testing.T, root string, live bool) {
	ctx := context.Background()
	c, err := api.Connect(ctx, root)
	if err != nil {
		t.Error(err)
		return
	}
	defer c.Close()
	if c.Live != live {
		t.Errorf("a server runs: %v", c.Live)
	}
	client := reflect.ValueOf(&c.WorkflowClient).Elem()
	if client.NumMethod() < 9 {
		t.Errorf("only %d calls", client.NumMethod())
	}
	for i := range client.NumMethod() {
		name, call := client.Type().Method(i).Name, client.Method(i)
		request := reflect.New(call.Type().In(1).Elem())
		if !request.Elem().FieldByName("Run").IsValid() { // of a lasting server
			err := outcomeOf(call.Call([]reflect.Value{reflect.ValueOf(ctx), request}))
			if connect.CodeOf(err) != connect.CodeFailedPrecondition || !strings.Contains(err.Error(), "`fairway serve`") {
				t.Errorf("%s with a server (%v): %v", name, live, err)
			}
			continue
		}
		request.Elem().FieldByName("Run").SetUint(7)
		for _, of := range []string{"Job", "Jobs"} {
			switch field := request.Elem().FieldByName(of); {
			case field.IsValid() && field.Kind() == reflect.String:
				field.SetString("1")
			case field.IsValid() && field.Type().Elem().Kind() == reflect.String:
				field.Set(reflect.ValueOf([]string{"1"}))
			}
		}
		if err := outcomeOf(call.Call([]reflect.Value{reflect.ValueOf(ctx),
			request})); connect.CodeOf(err) != connect.CodeNotFound ||
			!strings.Contains(err.Error(), "there is no run 7 here any more, or not yet; this folder has run 1") {
			t.Errorf("%s with a server (%v): %v", name, live, err)
		}
	}
}

// outcomeOf is the error that a call ended with, at once or in its stream.
func outcomeOf(results []reflect.Value) error {
	if err, ok := results[1].Interface().(error); ok {
		return err
	}
	stream, ok := results[0].Interface().(interface {
		Receive() bool
		Err() error
		Close() error
	})
	if !ok {
		return nil
	}
	defer func() { _ = stream.Close() }()
	for stream.Receive() {
	}
	return stream.Err()
}
