package dispatch

import "fairway/internal/taskqueue"

// Sites returns the sites that are known, in the order in which they became so.
func (c *Core) Sites() []taskqueue.SiteView {
	views := make([]taskqueue.SiteView, 0, len(c.fleet.monitor.sites))
	for _, s := range c.fleet.monitor.sites {
		v := taskqueue.SiteView{
			Name: s.Name, Min: s.MinPilots, Max: s.MaxPilots, Wanted: s.outlook.rooms.Wanted(), Inactive: s.inactive(),
			Idle: s.pilots[idle], Busy: s.pilots[busy], Failures: s.failures,
		}
		if c.fleet.now < s.notBefore {
			v.NotBefore = s.notBefore.Time()
		}
		views = append(views, v)
	}
	return views
}
