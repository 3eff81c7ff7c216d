package dispatch

import (
	"fmt"
	"slices"
	"testing"

	"fairway/internal/dispatch/records"
	"fairway/internal/taskqueue"
)

func TestUnusedResultsAreOldestFirst(t *testing.T) {
	var all []taskqueue.Record
	for i, made := range []int{7, 0, 3} {
		all = append(all, taskqueue.Record{
			Table: records.TableResult, Key: fmt.Sprintf("%032x", i),
			Body: fmt.Appendf(nil, `{"v":1,"j":"j","d":"d","n":%d,"o":[{"l":"x","f":"se:%d"}]}`, made, made),
		})
	}
	core, _, err := Load(taskqueue.Config{}, all)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, u := range core.Unused() {
		got = append(got, u.PFNs...)
	}
	if want := []string{"se:0", "se:3", "se:7"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
