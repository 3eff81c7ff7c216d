package systemd

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnit has systemd read the unit, with a program that is there in the place of ours.
func TestUnit(t *testing.T) {
	text, err := os.ReadFile("fairway.service")
	if err != nil {
		t.Fatal(err)
	}
	analyse, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is needed, of the package systemd")
	}
	const program = "/usr/local/bin/fairway"
	if !strings.Contains(string(text), "ExecStart="+program+" serve ") {
		t.Fatalf("the unit does not start %s", program)
	}
	unit := filepath.Join(t.TempDir(), "fairway.service")
	if err := os.WriteFile(unit, []byte(strings.Replace(string(text), program, "/bin/true", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(analyse, "verify", "--man=no", unit).CombinedOutput()
	if err != nil || strings.Contains(string(out), unit) {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}
