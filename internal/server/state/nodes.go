package state

import (
	"context"

	"fairway/internal/taskqueue"
)

// Nodes are what is known of pilots beside dispatch. All runs of a server share them. They
// belong to the loop, which makes them with the cores and discards them with these.
type Nodes struct {
	// Hosts are those of the pilots of all servers, also of those that have left.
	Hosts Hosts
	// Caches are what pilots have told of their caches. It is durable when a pilot has gone.
	Caches map[taskqueue.PilotID]CacheCounts
	// Storing is what pilots store now, as they said last; not durable.
	Storing map[taskqueue.PilotID]Storing
	// Used is what all runs did since the cores were loaded; not durable.
	Used Used
}

func newNodes() *Nodes {
	return &Nodes{
		Hosts: Hosts{}, Caches: map[taskqueue.PilotID]CacheCounts{}, Storing: map[taskqueue.PilotID]Storing{},
	}
}

func loadNodes(ctx context.Context, s Source) (*Nodes, error) {
	n := newNodes()
	pilots, err := s.Load(ctx, HostTable)
	if err != nil {
		return nil, err
	}
	n.Hosts = LoadHosts(pilots)
	return n, s.Each(ctx, CacheTable, n.recallCache)
}

// HostTable has one record for each pilot that registered, by pilot: the host
// that it runs on, as text. Nothing is decided by them; they are for people.
const HostTable = "server_host"

// Hosts tell where pilots run, also those that have left.
type Hosts map[taskqueue.PilotID]string

// Record takes in a pilot that registered, and returns what makes that durable.
func (h Hosts) Record(pilot taskqueue.PilotID, host string) taskqueue.Record {
	h[pilot] = host
	return taskqueue.Record{Table: HostTable, Key: string(pilot), Body: []byte(host)}
}

// LoadHosts reads the records of HostTable.
func LoadHosts(records []taskqueue.Record) Hosts {
	h := Hosts{}
	for _, r := range records {
		h[taskqueue.PilotID(r.Key)] = string(r.Body)
	}
	return h
}

// Storing counts the outputs that a pilot stores of attempts that have many: Stored of them
// are, 0 <= Stored <= Of.
type Storing struct{ Stored, Of int64 }

// Stores notes what a pilot says that it stores.
func (n *Nodes) Stores(pilot taskqueue.PilotID, storing Storing) {
	if storing.Of == 0 {
		delete(n.Storing, pilot)
		return
	}
	n.Storing[pilot] = storing
}

// Gone forgets what a pilot stores that has gone.
func (n *Nodes) Gone(pilot taskqueue.PilotID) { delete(n.Storing, pilot) }
