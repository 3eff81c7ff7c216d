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

// What differs from job to job of one kind of failure is left out of its message, and nothing else.
func TestMessagesThatAreAlike(t *testing.T) {
	long := strings.Repeat("x", messageLimit)
	for _, c := range []struct{ name, reason, want string }{
		{"align/7", "align/7: exit 1", "JOB: exit #"},
		{"j", "open /data/run1/a.txt: no such file", "open …/a.txt: no such file"},
		{"j", "open '/data/a b': 12:30:01.5", "open '…/a b': #"},
		{"j", "sum is deadbeef01, not 0123456789abcdef", "sum is #, not #"},
		{"j", "added beads", "added beads"},
		{"j", "node3.site:8080 and 10.0.0.1", "node#.site:# and #"},
		{"zzz", long + "1", long},
		{"zzz", long[1:] + "ä", long[1:]},
		{"j", "", ""},
	} {
		if got := alike(c.name, c.reason); got != c.want {
			t.Errorf("of %s %q is %q; want %q", c.name, c.reason, got, c.want)
		}
	}
}

func TestBeginningOfAReason(t *testing.T) {
	whole := strings.Repeat("x", messageLimit)
	for reason, want := range map[string]string{
		"": "", whole: whole, whole + "y": whole + "…", whole[1:] + "ä": whole[1:] + "…",
		whole[2:] + "ä": whole[2:] + "ä",
	} {
		if got := beginning(reason); got != want {
			t.Errorf("%q begins with %q", reason, got)
		}
	}
}

// A job is found that has all that is asked for.
func TestJobsThatFitASearch(t *testing.T) {
	job := &taskqueue.JobView{
		Name: "Align/7", Step: "align", State: taskqueue.Failed, Reason: "open /data/7: exit 7",
	}
	for name, c := range map[string]struct {
		q    JobSearch
		want bool
	}{
		"nothing":              {JobSearch{}, true},
		"its state":            {JobSearch{State: "failed"}, true},
		"another state":        {JobSearch{State: "done"}, false},
		"its step":             {JobSearch{Step: "align"}, true},
		"another step":         {JobSearch{Step: "sort"}, false},
		"a part of its name":   {JobSearch{Text: "gn/7"}, true},
		"its name in lower":    {JobSearch{Text: "align"}, true},
		"another name":         {JobSearch{Text: "sort"}, false},
		"its message":          {JobSearch{Message: "open …/#: exit #", literal: ": exit "}, true},
		"another message":      {JobSearch{Message: "open …/8: exit #", literal: ": exit "}, false},
		"a literal it has not": {JobSearch{Message: "open …/#: exit #", literal: ": left "}, false},
		"all of it":            {JobSearch{State: "failed", Step: "align", Text: "7"}, true},
		"all but its state":    {JobSearch{State: "done", Step: "align", Text: "7"}, false},
	} {
		if got := c.q.fits(job); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
