//go:build !linux

package notices

import "log/slog"

// TellsOfChanges reports whether the system gives notice of changes in a folder, which none does.
func TellsOfChanges(string) bool { return false }

// New returns what tells of nothing.
func New(*slog.Logger) (Notifier, error) { return None(), nil }
