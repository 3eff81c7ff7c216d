package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os/user"
	"testing"
)

// Who submits may have a permission that the user of the server does not have.
func TestErrorOfPermissionNamesTheUserOfTheServer(t *testing.T) {
	me, err := user.Current()
	if err != nil {
		t.Skip(err)
	}
	refused := fmt.Errorf("/home/ann: %w", &fs.PathError{Op: "open", Path: "in", Err: fs.ErrPermission})
	want := refused.Error() + "; the server reads inputs as the user " + me.Username + ", and so on"
	if got := asServer(refused, "reads inputs", ", and so on"); got.Error() != want || !errors.Is(got, fs.ErrPermission) {
		t.Errorf("%v, want %s", got, want)
	}
	if other := errors.New("no file matches"); !errors.Is(asServer(other, "reads inputs", ""), other) {
		t.Error("another error has changed")
	}
}
