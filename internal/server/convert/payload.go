package convert

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
	"fairway/internal/wire"
)

// JobsWithPayload turns what flow wants to be executed into the bytes that
// dispatch carries to the pilot. The same command gives the same bytes.
func JobsWithPayload(jobs []flow.NewJob) ([]dispatch.Job, error) {
	made := make([]dispatch.Job, len(jobs))
	for i := range jobs {
		payload, err := proto.MarshalOptions{Deterministic: true}.Marshal(payloadOf(&jobs[i].Command))
		if err != nil {
			return nil, fmt.Errorf("command of job %s: %w", jobs[i].Job.Name, err)
		}
		made[i] = jobs[i].Job
		made[i].Payload = payload
	}
	return made, nil
}

func payloadOf(c *flow.Command) *wire.Payload {
	return &wire.Payload{
		Shell:       c.Shell,
		Script:      c.Script,
		Interpreter: c.Interpreter,
		Log:         c.Log,
		Argv:        c.Argv,
		Environment: c.Environment,
		Replay:      replayOf(c.Replay),
		Names: Each(c.Names, func(n flow.SandboxName) *wire.FileName {
			return &wire.FileName{Lfn: n.LFN, Path: n.Path}
		}),
	}
}

func replayOf(r *flow.Replay) *wire.Replay {
	if r == nil {
		return nil
	}
	writes := make(map[string]int64, len(r.Writes))
	for _, w := range r.Writes {
		writes[w.LFN] = w.Size
	}
	return &wire.Replay{Compute: durationToWire(r.Compute), WritesBytes: writes, Program: r.Program}
}
