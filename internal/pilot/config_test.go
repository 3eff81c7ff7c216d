package pilot

import (
	"testing"
)

func TestConfig(t *testing.T) {
	if _, err := DecodeConfig(`{"serve": 1}`); err == nil {
		t.Error("an unknown field was accepted")
	}
	for _, c := range []Config{
		{},
		{Server: "unix:/x"},
		{Server: "unix:/x", Launch: "l"},
		{Server: "unix:/x", Launch: "l", Pilot: "../p", SandboxDir: "/s", LogDir: "/l"},
		{Server: "unix:/x", Launch: "l", SandboxDir: "/s", LogDir: "/l", Cache: CacheConfig{Mode: "moon"}},
		{Server: "unix:/x", Launch: "l", SandboxDir: "/s", LogDir: "/l", Cache: CacheConfig{Mode: CacheHost}},
	} {
		if c.check() == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	if _, err := newPilot(Config{Server: "gopher://x", Launch: "l", SandboxDir: "/s", LogDir: "/l"}); err == nil {
		t.Error("an unknown address was accepted")
	}
}
