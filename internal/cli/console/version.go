package console

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// VersionObject is what --json prints of this program.
type VersionObject struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Date     string `json:"date"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// ThisVersion is that of this program.
func ThisVersion() VersionObject {
	revision, date := source()
	return VersionObject{
		Version: ProgramVersion(), Revision: revision, Date: date, Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

// VersionText is the same for people.
func VersionText() string {
	v := ThisVersion()
	commit := ""
	if v.Revision != "" {
		commit = fmt.Sprintf("commit %.12s of %.10s, ", v.Revision, v.Date)
	}
	return fmt.Sprintf("%s (%s%s, %s)", v.Version, commit, v.Go, v.Platform)
}

// Release is the version that is released next, or was released last.
const Release = "0.1.0"

// What the linker says of the source (see the Makefile): the version, the commit, and when that was
// made.
var version, commit, date string

// ProgramVersion is what the Makefile says, or else that of a release whose changes are under way.
func ProgramVersion() string {
	if version != "" {
		return version
	}
	return Release + "-dev"
}

// source is the commit of which the program was built, and when that was made: what the linker says,
// or else what the Go command noted.
func source() (revision, when string) {
	revision, when = commit, date
	info, ok := debug.ReadBuildInfo()
	if !ok || revision != "" {
		return revision, when
	}
	for _, setting := range info.Settings {
		switch setting.Key {
		case "vcs.revision":
			revision = setting.Value
		case "vcs.time":
			when = setting.Value
		}
	}
	return revision, when
}
