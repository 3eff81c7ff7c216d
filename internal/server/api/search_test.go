package api

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"fairway/internal/taskqueue"
)

// Each failed job is in one group or in the rest, however many messages there are, and the largest groups are told.
func TestEachFailedJobIsCounted(t *testing.T) {
	word := func(i int) string { // without digits, which make no difference
		return strings.Map(func(r rune) rune { return r - '0' + 'k' }, fmt.Sprintf("%06d", i))
	}
	for _, messages := range []int{1, failureGroups, failureGroups + 1, messagesCompared, messagesCompared + 1} {
		g := grouping{byMessage: map[string]*FailureGroup{}}
		jobs := int64(0)
		add := func(i, step int) {
			jobs++
			g.add(&taskqueue.JobView{Name: fmt.Sprint("job/", jobs), Step: fmt.Sprint("step", step), Reason: word(i)})
		}
		for i := range messages {
			add(i, 0)
		}
		for step := range stepsTold + 2 {
			add(messages/2, step)
		}
		all := g.groups()
		sum := all.Rest
		for _, group := range all.Groups {
			sum += group.Jobs
		}
		if sum != jobs || len(all.Groups) > failureGroups || all.Messages > messagesCompared-len(all.Groups) {
			t.Errorf("of %d jobs with %d messages %d are told, in %d groups and %d more", jobs, messages, sum,
				len(all.Groups), all.Messages)
		}
		first := all.Groups[0]
		if first.Message != word(messages/2) || first.Jobs != stepsTold+3 || len(first.Steps) != stepsTold || !first.Others {
			t.Errorf("with %d messages the largest group is %+v", messages, first)
		}
		if !slices.IsSortedFunc(all.Groups, func(a, b *FailureGroup) int { return int(b.Jobs - a.Jobs) }) {
			t.Error("the groups have no order")
		}
	}
}
