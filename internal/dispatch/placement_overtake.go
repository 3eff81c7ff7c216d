package dispatch

import (
	"cmp"
	"time"
)

// A user whose job has its input in the cache of the pilot that asks may overtake another one
// whose job has not: the first is spared a transfer, and the second may find a pilot that suits
// it better (delay scheduling). Nobody gets ahead of the share by more than Shares.Overtake in this
// way, counted from when both had used what their weights give them; so it evens out.

// maxOvertaking bounds the users that are looked at besides the one whose turn it is.
const maxOvertaking = 8

// mayBeOvertaken reports whether the job, whose turn it is, would have to read input that the pilot
// does not hold, and can wait.
func (pl *placement) mayBeOvertaken(j *job, p *pilot) bool {
	return pl.shares.overtake() > 0 && j.readySince > pl.now.After(-pl.config.MaxPassOver) &&
		pl.fleet.readTime(p, j) >= minGain
}

// overtakes reports whether the job may be given to the pilot before that of a user whose turn it
// is.
func (pl *placement) overtakes(j, turn *job, p *pilot) bool {
	if pl.saves(p, j) < minGain {
		return false
	}
	cost := slotsOf(p, j.class) * pl.fleet.expectedRun(j).Seconds()
	return pl.shares.Ahead(pl.now, j.share(), turn.share())+cost <= pl.shares.overtake().Seconds()
}

// saves is how long it takes elsewhere to read what the pilot holds of the job's input.
func (pl *placement) saves(p *pilot, j *job) time.Duration {
	here, all := &p.launch.site.outlook.reads, &pl.fleet.pace.reads
	each := cmp.Or(here.storage.mean(), all.storage.mean())
	var sum float64
	for i := range j.requests {
		if v := j.requests[i].read; v != nil && !j.requests[i].streams() && p.reaches(v) {
			sum += float64(v.size) * each
		}
	}
	return seconds(sum)
}
