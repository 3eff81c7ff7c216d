//go:build !linux

package sched

import "log/slog"

func newNotifier(*slog.Logger) (notifier, error) { return newNoNotices(), nil }
