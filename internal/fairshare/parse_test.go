package fairshare

import (
	"strings"
	"testing"
	"time"

	"fairway/internal/dispatch"
	"fairway/internal/taskqueue"
)

const example = `half_life: 2d
overtake: 30s
limits: {licence: 5}
groups:
  physics:
    weight: 3
    running: 100
    users:
      ann: 2
      bob: {weight: 1, cores: 8, sites: {cluster: {running: 4}}}
  biology:
    groups:
      cells: {users: {ann: , cid: 0}}
users:
  dan: {stored: 2TB, queued: 1000}
`

func TestParse(t *testing.T) {
	p, err := Parse("shares.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	s := &p.Shares
	physics, dan := &s.Of[0], &s.Of[2]
	bob := &physics.Of[1]
	switch {
	case s.HalfLife != 48*time.Hour, s.Overtake != 30*time.Second, s.Limits["licence"] != 5,
		physics.Weight != 3, physics.Limits.Running != 100, physics.Of[0].Weight != 2,
		bob.Limits.MilliCPUs != 8000, bob.Limits.Sites["cluster"].Running != 4,
		s.Of[1].Of[0].Of[1].Weight != 0, dan.Limits.Stored != 2e12, dan.Limits.Queued != 1000:
		t.Errorf("%+v", p.Shares)
	}
	core, _ := dispatch.New(taskqueue.Config{})
	if _, err := core.Step(time.Unix(1e9, 0), taskqueue.SetShares{Shares: p.Shares}); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		user, group string
		certain     bool
		want        string
	}{
		{"ann", "", false, "physics/ann"},
		{"ann", "biology/cells", false, "biology/cells/ann"},
		{"ann", "biology", false, "!it is in physics, biology/cells"},
		{"dan", "", false, "dan"},
		{"eve", "", false, "!does not name"},
		{"eve", "", true, "eve"},
		{"eve", "physics", true, "!it is in none"},
	} {
		a, err := p.Account(c.user, c.group, c.certain, nil)
		if want, refused := strings.CutPrefix(c.want, "!"); refused {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, %v", c, a, err)
			}
		} else if a.String() != c.want || err != nil {
			t.Errorf("%+v: %v, %v", c, a, err)
		}
	}
}

func TestProblemsNameTheLine(t *testing.T) {
	for text, want := range map[string]string{
		"groups:\n  a:\n    wieght: 3\n":                "s.yaml:3:5: unknown key \"wieght\" in group \"a\"; did you mean \"weight\"?",
		"users:\n  a: -1\n":                             "s.yaml:2:6: user \"a\": weight: \"-1\" is no such number",
		"users:\n  a: {users: {b: 1}}\n":                "unknown key \"users\" in user \"a\"",
		"users:\n  a b: 1\n":                            "s.yaml:2:3: \"a b\" cannot be the name of a user",
		"groups:\n  a: {fairshare: 3}\n":                "write `weight: NUMBER`",
		"users:\n  a: 1\n  a: 2\n":                      "s.yaml:3:3: users has \"a\" twice",
		"limits: {licence: many}\n":                     "s.yaml:1:19: limits: licence: \"many\" is no such number",
		"groups:\n  a: {sites: {x: {jobs: 1}}}\n":       "unknown key \"jobs\"",
		"half_life: soon\n":                             "s.yaml:1:12: half_life",
		"groups:\n  a: {running: 0}\n":                  "is no such number; write a whole number from 1",
		"groups: {a: {weight: 1}}\nusers: {a: 1, b: 2}": "",
	} {
		_, err := Parse("s.yaml", []byte(text))
		if want == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, and not %q", text, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(example))
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Parse("s.yaml", data)
		if err != nil {
			return
		}
		core, _ := dispatch.New(taskqueue.Config{})
		if _, err := core.Step(time.Unix(1e9, 0), taskqueue.SetShares{Shares: p.Shares}); err != nil {
			t.Errorf("a file that is accepted is refused: %v", err)
		}
	})
}
