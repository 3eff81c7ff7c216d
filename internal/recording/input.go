package recording

import (
	"encoding/json"
	"fmt"
	"reflect"

	"fairway/internal/dispatch"
	"fairway/internal/flow"
)

// All inputs that there are.
var (
	dispatchInputs = []dispatch.Input{
		dispatch.SetRun{},
		dispatch.SetShares{},
		dispatch.SetKept{},
		dispatch.HoldJobs{},
		dispatch.CompleteRun{},
		dispatch.ReadersKnown{},
		dispatch.StopRun{},
		dispatch.RetireRun{},
		dispatch.KeepResults{},
		dispatch.ReleaseRun{},
		dispatch.LookFor{},
		dispatch.ForgetResults{},
		dispatch.AddFiles{},
		dispatch.Submit{},
		dispatch.Sync{},
		dispatch.HangUp{},
		dispatch.Refused{},
		dispatch.Cancel{},
		dispatch.RetryJobs{},
		dispatch.Prioritize{},
		dispatch.SetSite{},
		dispatch.PilotSubmitted{},
		dispatch.PilotEnded{},
		dispatch.LoseFiles{},
		dispatch.Published{},
		dispatch.Removed{},
		dispatch.Stop{},
		dispatch.Tick{},
	}
	flowInputs = []flow.Input{flow.Arrived{}, flow.Closed{}, flow.Happened{}, flow.Tick{}}
)

// kindOf is the name by which a recording knows an input.
func kindOf(in any) string { return reflect.TypeOf(in).Name() }

// decodeInput makes the input of one kind.
func decodeInput[T any](known []T, kind string, data json.RawMessage) (T, error) {
	var in T
	for _, k := range known {
		if kindOf(k) != kind {
			continue
		}
		made := reflect.New(reflect.TypeOf(k))
		err := decode(data, made.Interface())
		return made.Elem().Interface().(T), err
	}
	return in, fmt.Errorf("an input %q is unknown to this version", kind)
}
