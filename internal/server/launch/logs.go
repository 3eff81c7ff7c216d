package launch

import (
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fairway/internal/access"
	"fairway/internal/disk"
)

// logEnding is that of the name of what a pilot itself says.
const logEnding = ".log"

// LogHandler takes what pilots say that share no folder with the server, the last part of
// it in each call, and keeps it where those that do write it. It stands behind
// access.Handler: a launch writes its own and no other.
func (c *Connections) LogHandler() http.Handler {
	return access.Timed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, ok := access.CallerOf(r.Context())
		if !ok || !filepath.IsLocal(caller.Launch) || strings.Contains(caller.Launch, "/") {
			http.Error(w, "only the pilot of a launch tells what it says", http.StatusForbidden)
			return
		}
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, access.MaxPilotLog))
		if err != nil {
			http.Error(w, fmt.Sprintf("what a pilot says has at most %d bytes: %v", access.MaxPilotLog, err),
				http.StatusRequestEntityTooLarge)
			return
		}
		if err := access.WritePrivate(filepath.Join(c.folder, caller.Launch+logEnding), text); err != nil {
			c.log.Warn("what a pilot says could not be kept", "launch", caller.Launch, "error", err)
			http.Error(w, "it could not be kept", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}))
}

// Logs are the launches of which a folder of pilots holds what they said, the last one that
// said something first.
func Logs(folder string) (launches []string) {
	said := map[string]time.Time{}
	for _, file := range disk.WithEnding(folder, logEnding) {
		if info, err := os.Lstat(file); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
			launch := strings.TrimSuffix(filepath.Base(file), logEnding)
			said[launch] = info.ModTime()
			launches = append(launches, launch)
		}
	}
	slices.SortStableFunc(launches, func(a, b string) int { return said[b].Compare(said[a]) })
	return launches
}

// OpenLog opens what the pilot of a launch said. name may also be that of a pilot, which
// begins with its launch. The error wraps fs.ErrNotExist where there is nothing of it.
func OpenLog(folder, name string) (*os.File, error) {
	for _, launch := range Logs(folder) {
		if name == launch || strings.HasPrefix(name, launch+"-") {
			return os.Open(filepath.Join(folder, launch+logEnding))
		}
	}
	return nil, fmt.Errorf("pilot %.100q: %w", name, fs.ErrNotExist)
}
