package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

type versionObject struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func (c *console) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program",
		Example: "  fairway version --json",
		Args:    noArgument,
		RunE: func(*cobra.Command, []string) error {
			return c.answer(thisVersion(), func() { fmt.Fprintln(c.out, "fairway", versionText()) })
		},
	}
}

func thisVersion() versionObject {
	return versionObject{
		Version: programVersion(), Revision: revision(), Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
	}
}

func versionText() string {
	return fmt.Sprintf("%s (%s, %s/%s)", programVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// version is set by the linker (see the Makefile).
var version string

// programVersion is what the Makefile says, or else what the Go command noted.
func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return strings.Trim(info.Main.Version, "()") // of (devel)
	}
	return "unknown"
}

func revision() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			return setting.Value
		}
	}
	return ""
}
