package sweep

import (
	"context"

	"fairway/lib/orwl"
)

// end is where a frontier comes from or goes to: the data of a strip, or a
// location of its own.
type end struct {
	resource orwl.Resource
	holder   *strip // nil for a location of its own
}

// transport is the step of a task that copies a frontier.
func (p *Program) transport(ctx context.Context, f frontier, from, to end, rank int) (step, error) {
	read, write := new(orwl.Pair), new(orwl.Pair)
	read.SetName(f.String())
	write.SetName(f.String())
	stretches := func(sweeps int) []stretch {
		return p.strip(f.source).stretches(f.way, sweeps, from.holder, to.holder)
	}
	full := stretches(p.Sweeps)
	err := orwl.Insert(ctx, read.Reading(from.resource).At(rank), write.Writing(to.resource).At(rank))
	return step{orwl.Pairs{read, write}, func(sweeps int) error {
		source, err := orwl.ReadAs[float64](read)
		if err != nil {
			return err
		}
		target, err := orwl.WriteAs[float64](write)
		if err != nil {
			return err
		}
		if sweeps == p.Sweeps {
			carry(source, target, full)
		} else {
			carry(source, target, stretches(sweeps))
		}
		return nil
	}}, err
}
