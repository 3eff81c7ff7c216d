package dispatch

// fleet is what works for the TaskQueue: pilots on their hosts with the attempts
// that they were given, and the sites that start pilots.
//
// Invariants:
//   - An attempt is in attempts, in the list of its pilot and in that of its job,
//     or in none of them; pilot.used is the sum of what its attempts need.
//   - A pilot is in parked exactly while its Sync is held, it may be given jobs,
//     has a free processor, and drains for no job.
//   - Each launch counts once at its site, under what its pilot is.
//
// Attempts are not durable: after a restart they are what full Syncs name.
type fleet struct {
	*step
	journal *journal
	queue   *queue

	// Registered pilots, from their first Sync until they leave or are silent for
	// too long, and what they were given.
	pilots      map[PilotID]*pilot
	attempts    map[AttemptID]*attempt // that have not ended
	hosts       map[string]*host       // with a registered pilot
	shapes      []*shape               // of all pilots that ever registered
	shapeOf     map[classKey]*shape
	slots       int      // of all registered pilots
	parked      []*pilot // could start a job at once
	between     int      // pilots that run nothing and are between two Syncs
	recalls     int      // attempts being recalled
	lastAttempt uint64   // lower half of the number given last
	lastAnswer  uint64   // the same of answers

	// How far the run is.
	stop  stopping
	grace grace

	// Sites and launches, and how long things take; see estimates.
	monitor   monitor
	pace      pace
	transfers transfers
}

func newFleet(s *step, jn *journal, q *queue) fleet {
	return fleet{
		step: s, journal: jn, queue: q, pilots: make(map[PilotID]*pilot), attempts: make(map[AttemptID]*attempt),
		hosts: make(map[string]*host), shapeOf: make(map[classKey]*shape),
		monitor: newMonitor(), pace: pace{runs: make(map[*StepTotals]*average)},
	}
}
