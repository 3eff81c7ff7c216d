package console

import (
	"os"
	"slices"
	"syscall"
	"testing"
)

// What closes a terminal or a session sends several signals, and is one wish.
func TestWhichSignalAsksAgain(t *testing.T) {
	const hup, term, quit = syscall.SIGHUP, syscall.SIGTERM, syscall.SIGQUIT
	for _, test := range []struct {
		signals []os.Signal
		want    []int
	}{
		{[]os.Signal{os.Interrupt, os.Interrupt, os.Interrupt}, []int{0, 1, 2}},
		{[]os.Signal{term, os.Interrupt}, []int{0, 1}},
		{[]os.Signal{hup, hup, hup}, []int{0, -1, -1}},
		{[]os.Signal{hup, term, hup, term}, []int{0, -1, -1, 1}},
		{[]os.Signal{term, hup, hup}, []int{0, -1, -1}},
		{[]os.Signal{os.Interrupt, hup, os.Interrupt}, []int{0, -1, 1}},
		{[]os.Signal{quit, quit}, []int{1, 2}},
		{[]os.Signal{os.Interrupt, quit}, []int{0, 1}},
		{[]os.Signal{hup, hup, quit}, []int{0, -1, 1}},
	} {
		var a asks
		var got []int
		for _, s := range test.signals {
			got = append(got, a.next(s))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: %v, want %v", test.signals, got, test.want)
		}
	}
}
