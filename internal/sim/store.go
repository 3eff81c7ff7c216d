package sim

import (
	"cmp"
	"slices"

	"fairway/internal/dispatch"
)

// memory is a store that survives the crashes of a run. Where a run has none
// it only counts.
type memory struct {
	keep    bool
	tables  map[[2]string][]byte
	records int
	bytes   int64
}

func (m *memory) apply(records []dispatch.Record) {
	m.records += len(records)
	for _, r := range records {
		m.bytes += int64(len(r.Body))
		switch key := [2]string{r.Table, r.Key}; {
		case !m.keep:
		case r.Body == nil:
			delete(m.tables, key)
		default:
			m.tables[key] = slices.Clone(r.Body)
		}
	}
}

// all returns what is durable, in the order of tables and keys.
func (m *memory) all() []dispatch.Record {
	records := make([]dispatch.Record, 0, len(m.tables))
	for key, body := range m.tables {
		records = append(records, dispatch.Record{Table: key[0], Key: key[1], Body: slices.Clone(body)})
	}
	slices.SortFunc(records, func(a, b dispatch.Record) int {
		return cmp.Or(cmp.Compare(a.Table, b.Table), cmp.Compare(a.Key, b.Key))
	})
	return records
}
