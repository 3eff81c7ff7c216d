package server

import "fairway/internal/dispatch"

// hostTable has one record for each pilot that registered, by pilot: the host
// that it runs on, as text. Nothing is decided by them; they are for people.
const hostTable = "server_host"

// hosts tell where pilots run, also those that have left.
type hosts map[dispatch.PilotID]string

func (h hosts) record(pilot dispatch.PilotID, host string) dispatch.Record {
	h[pilot] = host
	return dispatch.Record{Table: hostTable, Key: string(pilot), Body: []byte(host)}
}

func loadHosts(records []dispatch.Record) hosts {
	h := hosts{}
	for _, r := range records {
		h[dispatch.PilotID(r.Key)] = string(r.Body)
	}
	return h
}
