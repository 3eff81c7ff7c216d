package recording

import (
	"encoding/json"
	"fmt"
	"reflect"

	"fairway/internal/flow"
	"fairway/internal/taskqueue"
)

// All inputs that there are.
var (
	dispatchInputs = []taskqueue.Input{
		taskqueue.SetRun{},
		taskqueue.SetShares{},
		taskqueue.SetKept{},
		taskqueue.HoldJobs{},
		taskqueue.CompleteRun{},
		taskqueue.ReadersKnown{},
		taskqueue.StopRun{},
		taskqueue.RetireRun{},
		taskqueue.KeepResults{},
		taskqueue.ReleaseRun{},
		taskqueue.LookFor{},
		taskqueue.ForgetResults{},
		taskqueue.AddFiles{},
		taskqueue.Submit{},
		taskqueue.Sync{},
		taskqueue.HangUp{},
		taskqueue.Refused{},
		taskqueue.Cancel{},
		taskqueue.RetryJobs{},
		taskqueue.Prioritize{},
		taskqueue.SetSite{},
		taskqueue.PilotSubmitted{},
		taskqueue.PilotEnded{},
		taskqueue.LoseFiles{},
		taskqueue.Published{},
		taskqueue.Removed{},
		taskqueue.Stop{},
		taskqueue.Tick{},
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
