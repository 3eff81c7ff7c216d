package dispatch

import (
	"fmt"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
)

// describeSites tells the core of the sites, which are not durable.
func (s *simulation) describeSites() error {
	for _, site := range s.sites {
		if err := s.step(taskqueue.SetSite{Site: site}); err != nil {
			return err
		}
	}
	return nil
}

// newSites has thresholds that leave some pilots to be asked for.
func (s *simulation) newSites() []taskqueue.Site {
	var sites []taskqueue.Site
	for _, name := range simSites {
		most := s.rng.IntN(6)
		sites = append(sites, taskqueue.Site{
			Name: name, MinPilots: s.rng.IntN(most + 1), MaxPilots: most, MinIdlePilots: s.rng.IntN(3),
			Pilot: taskqueue.Resources{MilliCPUs: 2000, Memory: 1000, Countable: map[string]int64{quantity.GPU: 1}},
		})
	}
	return sites
}

// weighSites has the sites differ in what may be weighed. Files have few bytes,
// so each counts much.
func (s *simulation) weighSites() {
	s.config.Sites = taskqueue.SiteWeights{
		Data: float64(s.rng.IntN(2)) * 1e7, Queue: float64(s.rng.IntN(2)), Money: float64(s.rng.IntN(2)) * 3600,
	}
	for i := range s.sites {
		site := &s.sites[i]
		site.Price, site.QueueWait = s.rng.Float64(), s.ms(10_000)
		site.Storage = []string{"", "data:"}[s.rng.IntN(2)]
	}
}

var simSites = []string{"a", "b"}

// submitPilots is what a batch system does: it confirms a pilot, loses it or
// starts it, in any order.
func (s *simulation) submitPilots(x taskqueue.Start) {
	for range x.Count {
		s.born++
		launch := fmt.Sprintf("%s.%d", x.Site, s.born)
		if !s.chance(10) {
			s.after(s.ms(2000), func() error { return s.step(taskqueue.PilotSubmitted{Site: x.Site, Launch: launch}) })
		}
		if s.chance(20) {
			s.after(s.ms(20_000), func() error { return s.step(taskqueue.PilotEnded{Launch: launch}) })
			continue
		}
		s.after(s.ms(5000), func() error {
			s.startPilot(x.Site, launch)
			return nil
		})
	}
}
