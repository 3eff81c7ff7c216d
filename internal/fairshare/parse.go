package fairshare

import (
	"fmt"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/yamlfile"
)

// FileKeys are those of the file, GroupKeys those of a group. A user has some of these. The tables
// are made by init, since that of groups refers to itself.
var (
	FileKeys            []yamlfile.Key[taskqueue.Shares]
	GroupKeys, userKeys []yamlfile.Key[taskqueue.Share]
	siteKeys            []yamlfile.Key[taskqueue.SiteQuota]
)

func init() {
	siteKeys = []yamlfile.Key[taskqueue.SiteQuota]{
		{Name: "running", Help: "jobs at a time at the site", Read: yamlfile.Whole(1, func(q *taskqueue.SiteQuota) *int { return &q.Running })},
		{Name: "cores", Help: "processors of these", Read: yamlfile.Into(quantity.MilliCPUs, func(q *taskqueue.SiteQuota) *int64 { return &q.MilliCPUs })},
	}
	userKeys = []yamlfile.Key[taskqueue.Share]{
		{Name: "weight", Help: "part that it gets, relative to the others beside it (default 1); 0: what all others leave", Read: weight},
		{Name: "running", Help: "most jobs that pilots have at a time", Read: yamlfile.Whole(1, func(s *taskqueue.Share) *int { return &s.Limits.Running })},
		{Name: "cores", Help: "most processors of these", Read: yamlfile.Into(quantity.MilliCPUs, func(s *taskqueue.Share) *int64 { return &s.Limits.MilliCPUs })},
		{Name: "queued", Help: "most jobs that wait, in runs that were not stopped; beyond that nothing is submitted", Read: yamlfile.Whole(1, func(s *taskqueue.Share) *int { return &s.Limits.Queued })},
		{Name: "stored", Help: "size of what its runs may keep in storage, such as 2TB; beyond that none of its jobs starts", Read: yamlfile.Into(quantity.Room, func(s *taskqueue.Share) *int64 { return &s.Limits.Stored })},
		{Name: "sites", Help: "by name of a site: `running` and `cores` there", Read: sites},
	}
	GroupKeys = append(slices.Clone(userKeys), []yamlfile.Key[taskqueue.Share]{
		{Name: "retention", Help: "how long results of the group are kept that no run names any more, such as 30d (default: that around it; 0: not at all)", Read: shareRetention},
		{Name: "users", Help: "users of the group, by name: a weight, or keys of this table", Read: users},
		{Name: "groups", Help: "groups in it, by name", Read: groups},
	}...)
	FileKeys = []yamlfile.Key[taskqueue.Shares]{
		{Name: "half_life", Help: "time after which usage counts half (default 7d)", Read: yamlfile.Into(quantity.Duration, func(s *taskqueue.Shares) *time.Duration { return &s.HalfLife })},
		{Name: "overtake", Help: "slot-seconds by which a user may get ahead of the share where a pilot has the input (default 1m; 0: not at all)", Read: overtake},
		{Name: "retention", Help: "the same as in a group, for groups that do not say (default: that of `serve --retention`)", Read: retention},
		{Name: "limits", Help: "of what steps ask for under `needs:`, how much all jobs together may have, such as {licence: 5}", Read: limits},
		{Name: "groups", Help: "groups, by name", Read: rootGroups},
		{Name: "users", Help: "users who are in no group, by name: a weight, or keys of the table below", Read: rootUsers},
	}
}

// habits are keys of other systems, and what to write instead.
var habits = map[string]string{
	"fairshare": "write `weight: NUMBER`", "shares": "write `weight: NUMBER`", "share": "write `weight: NUMBER`",
	"maxjobs": "write `running: NUMBER`", "max_jobs": "write `running: NUMBER`", "grpjobs": "write `running: NUMBER`",
	"cpus": "write `cores: NUMBER`", "grpcpus": "write `cores: NUMBER`", "maxsubmitjobs": "write `queued: NUMBER`",
	"accounts": "write `groups:`", "members": "write `users:`", "disk": "write `stored: SIZE`",
	"halflife": "write `half_life: 7d`", "keep": "write `retention: 30d`", "expire": "write `retention: 30d`",
}

// Parse reads a file of shares. file is its name for messages. The error is [yamlfile.Problems].
func Parse(file string, data []byte) (*People, error) {
	r := &yamlfile.Reader{
		File: file, Kind: "file of shares", Limit: MaxFile, Oversize: "name users in groups of others",
		Begin: "start with `groups:` or `users:`",
	}
	p := &People{}
	if root := r.Root(data); root != nil {
		yamlfile.Take(r, root, &p.Shares, "", FileKeys, habits)
	}
	if len(r.Problems) > 0 {
		return nil, r.Problems.Sorted()
	}
	return p, nil
}

func shares(r *yamlfile.Reader, n *yaml.Node, what string, users bool) (list []taskqueue.Share) {
	for _, f := range r.Mapping(n, what) {
		s := taskqueue.Share{Name: f.Key.Value, User: users, Weight: 1}
		kind := "group"
		if users {
			kind = "user"
		}
		what := fmt.Sprintf("%s %q", kind, s.Name)
		if !taskqueue.NamesShare(s.Name) {
			r.Fail(f.Key, "write a name without /, spaces and control characters", "%q cannot be the name of a %s", s.Name, kind)
		}
		if v := yamlfile.Follow(f.Value); users && v.Kind == yaml.ScalarNode && v.Tag != "!!null" {
			weight(r, v, &s, what+": weight")
		} else if v.Tag != "!!null" {
			keys := GroupKeys
			if users {
				keys = userKeys
			}
			yamlfile.Take(r, v, &s, what, keys, habits)
		}
		list = append(list, s)
	}
	return list
}

func weight(r *yamlfile.Reader, n *yaml.Node, s *taskqueue.Share, what string) {
	if text, ok := r.Text(n, what); ok {
		if s.Weight = r.Integer(n, text, what, 0); s.Weight > maxWeight {
			r.Fail(yamlfile.Follow(n), fmt.Sprintf("write a number up to %d", maxWeight), "%s is %d", what, s.Weight)
		}
	}
}

// maxWeight bounds weights, so that their sums stay exact.
const maxWeight = 1 << 31

func users(r *yamlfile.Reader, n *yaml.Node, s *taskqueue.Share, what string) {
	s.Of = append(s.Of, shares(r, n, what, true)...)
}

func groups(r *yamlfile.Reader, n *yaml.Node, s *taskqueue.Share, what string) {
	s.Of = append(s.Of, shares(r, n, what, false)...)
}

func rootUsers(r *yamlfile.Reader, n *yaml.Node, s *taskqueue.Shares, what string) {
	s.Of = append(s.Of, shares(r, n, what, true)...)
}

func rootGroups(r *yamlfile.Reader, n *yaml.Node, s *taskqueue.Shares, what string) {
	s.Of = append(s.Of, shares(r, n, what, false)...)
}

func overtake(r *yamlfile.Reader, n *yaml.Node, s *taskqueue.Shares, what string) {
	if text, ok := r.Text(n, what); ok {
		if s.Overtake = -1; text != "0" {
			s.Overtake = yamlfile.Scalar(r, n, text, what, quantity.Duration)
		}
	}
}

func retention(r *yamlfile.Reader, n *yaml.Node, s *taskqueue.Shares, what string) {
	s.Retention = keeps(r, n, what)
}

func shareRetention(r *yamlfile.Reader, n *yaml.Node, s *taskqueue.Share, what string) {
	s.Retention = keeps(r, n, what)
}

// keeps reads how long results are kept: negative where that is not at all.
func keeps(r *yamlfile.Reader, n *yaml.Node, what string) time.Duration {
	text, ok := r.Text(n, what)
	if !ok || text == "0" {
		return -1
	}
	return yamlfile.Scalar(r, n, text, what, quantity.Duration)
}

func limits(r *yamlfile.Reader, n *yaml.Node, s *taskqueue.Shares, what string) {
	s.Limits = map[string]int64{}
	for _, f := range r.Mapping(n, what) {
		if text, ok := r.Text(f.Value, what+": "+f.Key.Value); ok {
			s.Limits[f.Key.Value] = r.Integer(f.Value, text, what+": "+f.Key.Value, 0)
		}
	}
}

func sites(r *yamlfile.Reader, n *yaml.Node, s *taskqueue.Share, what string) {
	s.Limits.Sites = map[string]taskqueue.SiteQuota{}
	for _, f := range r.Mapping(n, what) {
		what := fmt.Sprintf("%s: %s", what, f.Key.Value)
		var q taskqueue.SiteQuota
		yamlfile.Take(r, f.Value, &q, what, siteKeys, habits)
		s.Limits.Sites[f.Key.Value] = q
	}
}
