package pilot

import (
	"strings"
	"testing"

	"fairway/internal/access"
)

// A pilot does not start with what it could only misunderstand.
func TestConfigIsChecked(t *testing.T) {
	valid := func() Config {
		return Config{Server: "unix:/s", Launch: "l", SandboxDir: "/sandbox", LogDir: "/logs", Storage: "/storage"}
	}
	for want, change := range map[string]func(*Config){
		"server is missing":                          func(c *Config) { c.Server = "" },
		"launch is missing":                          func(c *Config) { c.Launch = "" },
		`ID ".p" is not usable`:                      func(c *Config) { c.Pilot = ".p" },
		`ID "a/b" is not usable`:                     func(c *Config) { c.Pilot = "a/b" },
		`watch_inputs "some" is none of`:             func(c *Config) { c.WatchInputs = "some" },
		`cache.mode "all" is none of`:                func(c *Config) { c.Cache.Mode = "all" },
		"write host":                                 func(c *Config) { c.Cache.Mode, c.Cache.Dir = CacheGlobal, "/cache" },
		"needs cache.dir":                            func(c *Config) { c.Cache.Mode = CacheHost },
		"scratch must be an absolute path whose":     func(c *Config) { c.Scratch = "/tmp/other" },
		`sandbox_dir must be an absolute path, not`:  func(c *Config) { c.SandboxDir = "" },
		`log_dir must be an absolute path, not "l"`:  func(c *Config) { c.LogDir = "l" },
		`spool_dir must be an absolute path, not "s`: func(c *Config) { c.SpoolDir = "s" },
		"": func(c *Config) {
			c.Line, c.Cache.Mode, c.Cache.Dir = new(access.Line), CacheGlobal, "/cache"
		},
	} {
		c := valid()
		change(&c)
		err := c.check()
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestUnusableConfigs(t *testing.T) {
	if _, err := DecodeConfig(`{"serve": 1}`); err == nil {
		t.Error("an unknown field was accepted")
	}
	if _, err := newPilot(Config{Server: "gopher://x", Launch: "l", SandboxDir: "/s", LogDir: "/l"}); err == nil {
		t.Error("an unknown address was accepted")
	}
}
