package taskqueue

import "fmt"

// Placement names the rule by which jobs are matched to pilots' caches.
type Placement uint8

const (
	// AsConfigured is not said: a job goes by the rule of the site of the pilot that asks, and a site
	// by that of the Config, where it is ByGain.
	AsConfigured Placement = iota
	// ByGain prefers the job with the most input bytes in the
	// pilot's cache, and keeps a job for an idle or a busy pilot that holds more
	// as long as what that cache is expected to save is worth the waiting.
	ByGain
	// ByBytes prefers as ByGain does, and keeps a job for an idle pilot that
	// holds more, until that asks.
	ByBytes
	// ByFiles prefers the job with the most input files there, and waits as
	// ByBytes does: the cache-aware scheduling and waitForData of paper 3,
	// section IV-E.
	ByFiles
)

// Placements are the rules by the names that people give them.
var Placements = map[string]Placement{"by-gain": ByGain, "by-bytes": ByBytes, "by-files": ByFiles}

// ParsePlacement reads the name of a rule. The error says what to write.
func ParsePlacement(name string) (Placement, error) {
	if p, ok := Placements[name]; ok {
		return p, nil
	}
	return AsConfigured, fmt.Errorf("%q is no rule of placement; write by-gain, by-bytes or by-files", name)
}
