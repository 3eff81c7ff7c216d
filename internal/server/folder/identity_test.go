package folder

import (
	"os"
	"strings"
	"testing"
)

func TestFolderThatMayNotBeWritten(t *testing.T) {
	if _, err := os.Stat("/sys/kernel"); err != nil {
		t.Skip("no sysfs, in which nobody may make a folder")
	}
	err := claimFolder("/sys/kernel/.fairway")
	if err == nil || !strings.Contains(err.Error(), "; keep state and results in another folder with --dir") {
		t.Error(err)
	}
}
