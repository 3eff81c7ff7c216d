package batch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"fairway/internal/quantity"
)

// Waiting says why pilots of the site are not there yet, one sentence each for a person:
// what the batch system gives as the reason, what it has refused, that it is silent. It
// is empty where no pilot is awaited. Launches that came are there, whatever the last
// answer says, and so are those that a Notifier has taken.
func (r *Roster) Waiting(came map[string]bool) (lines []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	queued, since := map[string]int{}, map[string]time.Time{}
	for name, l := range r.launches {
		if r.Notified() || came[name] || !l.asked || l.flying || l.doubtful || l.withdrawn ||
			l.seen && l.status.State != Queued {
			continue
		}
		why := "not in the list of the batch system yet"
		if l.seen {
			why = cmp.Or(l.status.Reason, "no reason is given")
		}
		queued[why]++
		if first, ok := since[why]; !ok || l.at.Before(first) {
			since[why] = l.at
		}
	}
	for why, n := range queued {
		lines = append(lines, fmt.Sprintf("site %s: %s queued for %s: %s", r.cfg.Site, quantity.Count(int64(n), r.cfg.Job),
			seconds(now.Sub(since[why])), why))
	}
	slices.Sort(lines)
	if r.refusal != nil {
		lines = append(lines, fmt.Sprintf("site %s: refused: %s; tried again in %s", r.cfg.Site, oneLine(r.refusal),
			seconds(max(r.retryAt.Sub(now), 0))))
	}
	if r.silence != nil {
		lines = append(lines, fmt.Sprintf("site %s: it does not say which jobs it has: %s", r.cfg.Site, oneLine(r.silence)))
	}
	return lines
}

func seconds(d time.Duration) string { return quantity.Seconds(d.Round(time.Second).Seconds()) }

func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
