//go:build !linux

package sched

import "log/slog"

// TellsOfChanges reports whether the system gives notice of entries that come, go
// or are written in a folder, so that [Scheduler.WaitFile] need not look by the
// clock more often than every [FileRecheck].
func TellsOfChanges(string) bool { return false }

func newNotifier(*slog.Logger) (notifier, error) { return newNoNotices(), nil }
