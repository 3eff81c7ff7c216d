package dispatch

import "time"

// keepForSite reports whether the job, which the pilot could start, is rather
// kept for another site, and makes a note of it.
func (pl *placement) keepForSite(j *job, p *pilot) bool {
	s, patience := pl.betterSite(j, p)
	if s == nil {
		return false
	}
	pl.unkeep(j)
	s.outlook.awaited++
	pl.noteKept(j, keeping{site: s, until: pl.now.after(patience)})
	return true
}

// betterSite returns a site at which the job is expected to do better than with
// the pilot, although it has to wait for it, and for how much longer it may do
// so; nil if there is none. It never waits in all for longer than running there
// is expected to save, nor than MaxPassOver.
func (pl *placement) betterSite(j *job, p *pilot) (*site, time.Duration) {
	if k := &j.class.key; !pl.fleet.choosesSites() || k.host != "" || k.pilot != "" {
		return nil, 0
	}
	waited := time.Duration(pl.now - j.readySince)
	here := pl.scoreWith(j, p)
	best, least, patience := (*site)(nil), here, time.Duration(0)
	for _, s := range pl.fleet.monitor.sites {
		if s == p.launch.site || !pl.fleet.serves(s, j.class) {
			continue
		}
		far := s.farBytes(j, nil)
		limit := pl.worth(here - pl.fleet.score(j, s, far, 0))
		free, known := pl.slotIn(j, s)
		if !known || waited+free >= limit {
			continue
		}
		if x := pl.fleet.score(j, s, far, free); x < least {
			best, least, patience = s, x, limit-waited
		}
	}
	return best, patience
}

// scoreWith is the score of the job at the pilot: now, or, where it would be
// queued there, after a run.
func (pl *placement) scoreWith(j *job, p *pilot) float64 {
	s, start := p.launch.site, time.Duration(0)
	if !p.room(j.class, 1) {
		start = pl.fleet.runAt(j, s)
	}
	return pl.fleet.score(j, s, s.farBytes(j, p), start)
}

// worth is how long a job may wait to save so much.
func (pl *placement) worth(gain float64) time.Duration {
	limit := pl.config.MaxPassOver
	if gain < minGain.Seconds() {
		return 0
	}
	if w := pl.config.Sites.Queue; w > 0 {
		limit = min(limit, seconds(min(gain/w, limit.Seconds())))
	}
	return limit
}

// slotIn is when the site is expected to have room for the job, after those that
// are kept for it already. It is not known where no pilot is on its way.
func (pl *placement) slotIn(j *job, s *site) (time.Duration, bool) {
	turn := pl.fleet.runAt(j, s)
	before := time.Duration(s.outlook.awaited)
	if k := pl.kept.jobs[j.id]; k.site == s {
		before--
	}
	switch here, coming := s.pilots[idle]+s.pilots[busy], s.inactive(); {
	case s.pilots[idle] > 0:
		return turn * before / time.Duration(here), true
	case here > 0:
		return turn * (before + 1) / time.Duration(here), true
	case coming > 0:
		return s.stillWaits() + turn*before/time.Duration(coming), true
	}
	return 0, false
}
