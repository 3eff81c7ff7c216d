package access

import "testing"

// BenchmarkClaims is what it costs to check a Sync with one result, and the ticket of
// one assignment: the price of each job.
func BenchmarkClaims(b *testing.B) {
	c := claims(b)
	m := honest(c)
	m.Queued, m.Started = nil, m.Started[:1]
	b.ReportAllocs()
	for b.Loop() {
		c.Authority.Ticket(2, 3, 9)
		if err := c.Check(caller, m); err != nil {
			b.Fatal(err)
		}
	}
}
