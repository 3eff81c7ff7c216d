//go:build !linux

package sched

import "log/slog"

// TellsOfChanges reports whether the system gives notice of every change in a
// folder, so that [Scheduler.WaitFile] need not look by the clock.
func TellsOfChanges(string) bool { return false }

func newNotifier(*slog.Logger) (notifier, error) { return newNoNotices(), nil }
