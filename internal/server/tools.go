package server

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"

	"fairway/internal/flow/workflow"
	"fairway/internal/server/loop"
	"fairway/internal/server/state"
	"fairway/internal/taskqueue"
	"fairway/lib/sched"
)

// LookTime is how long a submission waits for pilots that are there to look for the programs that it
// names. Where they have not answered, or there are none, its jobs wait for those that have them.
const LookTime = 2 * time.Second

// findTools has pilots look for the programs that steps name, and refuses those that no site has, as
// far as pilots have looked.
func (s *Server) findTools(ctx context.Context, demands []workflow.Demand, waitAnyway bool) error {
	var tools []string
	for _, demand := range demands {
		tools = append(tools, demand.Tools...)
	}
	if len(tools) == 0 {
		return nil
	}
	slices.Sort(tools)
	tools = slices.Compact(tools)
	err := s.inbox.Do(ctx, &loop.Request{Dispatch: []taskqueue.Input{taskqueue.LookFor{Tools: tools}}})
	if err != nil {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, LookTime)
	defer cancel()
	for {
		changed := s.loop.Changes()
		var looking bool
		var missing []string
		err := s.inbox.Query(ctx, func(c *state.Cores) {
			looking, missing = c.Dispatch.Looking(), c.Dispatch.Missing(tools)
		})
		switch {
		case err != nil:
			return err
		case !looking && len(missing) > 0 && !waitAnyway:
			return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("no pilot has %s, which the workflow needs: "+
				"install it where pilots start, or put it into PATH there; with wait_anyway (--wait-anyway) the run waits for "+
				"a pilot that has it", strings.Join(missing, ", ")))
		case !looking:
			return nil
		}
		if _, err := sched.Receive(limited, s.sched, changed); !errors.Is(err, sched.ErrChannelClosed) {
			return ctx.Err()
		}
	}
}
