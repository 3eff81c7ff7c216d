package dispatch

var outcomeNames = [...]string{
	Succeeded: "succeeded", Exited: "exited", Signalled: "signalled", OutOfMemory: "out of memory",
	OutOfTime: "out of time", OutOfDisk: "out of disk", MissingOutput: "missing output",
	StageInFailed: "stage-in failed", StageOutFailed: "stage-out failed", Ended: "ended", Lost: "lost",
	InputChanged: "input changed", InputLost: "input lost",
}

// String returns the outcome in words.
func (o Outcome) String() string { return nameOf(outcomeNames[:], int(o)) }

var stateNames = [...]string{
	Waiting: "waiting", Ready: "ready", Assigned: "assigned", Running: "running", Committing: "committing",
	Done: "done", Failed: "failed", Blocked: "blocked", Cancelled: "cancelled",
}

// String returns the state in a word, as people see it.
func (s State) String() string { return nameOf(stateNames[:], int(s)) }

var eventNames = [...]string{
	JobSubmitted: "submitted", JobReady: "ready", JobStarted: "started", JobCommitted: "committed",
	JobRetried: "retried", JobFailed: "failed", JobBlocked: "blocked", JobUnblocked: "unblocked",
	JobCancelled: "cancelled", PilotRegistered: "pilot registered", PilotGone: "pilot gone",
	JobRegenerating: "regenerating", JobRegenerated: "regenerated", FileLost: "file lost",
	RunOver: "run over",
}

// String returns the kind in words.
func (k EventKind) String() string { return nameOf(eventNames[:], int(k)) }

func nameOf(names []string, i int) string {
	if i < 0 || i >= len(names) {
		return "unknown"
	}
	return names[i]
}
