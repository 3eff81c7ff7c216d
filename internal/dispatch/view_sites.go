package dispatch

import "time"

// SiteView is how the pilots of a site stand.
type SiteView struct {
	Name string
	Min  int // pilots that are always there
	Max  int
	// Wanted is how many pilots the last plan wants besides those that have registered.
	Wanted   int
	Inactive int // submitted, and not registered
	Idle     int
	Busy     int // or they take no jobs
	Failures int // pilots in a row that could not work
	// NotBefore is when the next pilot is submitted at the earliest; zero: at any time.
	NotBefore time.Time
}

// Sites returns the sites that are known, in the order in which they became so.
func (c *Core) Sites() []SiteView {
	views := make([]SiteView, 0, len(c.fleet.monitor.sites))
	for _, s := range c.fleet.monitor.sites {
		v := SiteView{
			Name: s.Name, Min: s.MinPilots, Max: s.MaxPilots, Wanted: s.pilotsWanted(), Inactive: s.inactive(),
			Idle: s.pilots[idle], Busy: s.pilots[busy], Failures: s.failures,
		}
		if c.fleet.now < s.notBefore {
			v.NotBefore = s.notBefore.Time()
		}
		views = append(views, v)
	}
	return views
}
