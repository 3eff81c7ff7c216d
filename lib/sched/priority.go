package sched

// Priorities says how threads that compute are told from threads that react.
type Priorities int

const (
	// PrioritiesAuto is Slices where the system has them and otherwise none.
	PrioritiesAuto Priorities = iota
	// Slices asks for short time slices for the threads that react (Linux 6.12
	// and later). The kernel then lets them go first when they wake up, while
	// in the long run all threads get the same share, so that computing keeps
	// its share beside other programs. Needs no privilege.
	Slices
	// Nice lowers the priority of computing threads to 19. It works on every
	// Linux, but computing gets next to nothing beside other programs of the
	// same session or cgroup. Needs no privilege. A task keeps its thread.
	Nice
	// NoPriorities leaves threads as they are. Spare Ps alone make most
	// reactions fast, but some wait for the time slice of a computing thread.
	NoPriorities
)
