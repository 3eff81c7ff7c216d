package pilot

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
)

// Pilots that start at the same time each take the others for what they are:
// pilots that live.
func TestClaimsAtTheSameTime(t *testing.T) {
	folder := t.TempDir()
	var claiming sync.WaitGroup
	for i := range 40 {
		claiming.Go(func() {
			cfg := &Config{Pilot: fmt.Sprint(i), SandboxDir: folder + "/sandbox", LogDir: folder + "/logs"}
			r, err := claimSandboxes(cfg, slog.Default())
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { r.close(slog.Default()) })
		})
	}
	claiming.Wait()
}
