package pilot

import (
	"os"

	"golang.org/x/sys/unix"
)

// restraint takes from commands that run as root the right to write where the
// permissions of a file forbid it. Inputs are links to files that others read
// too, and what Fairway has made is read-only; without this a command of root
// could overwrite it all the same. Reading is left as it is.
type restraint bool

func newRestraint() restraint { return os.Geteuid() == 0 }

// apply has it hold for what the calling thread executes from now on (the
// thread itself keeps the right), for which the caller is bound to the thread.
// Where the kernel refuses, what a command wrote to its input is still noticed
// at its end.
func (r restraint) apply() {
	if r {
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_DAC_OVERRIDE, 0, 0, 0)
	}
}
