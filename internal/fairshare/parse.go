package fairshare

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"fairway/internal/quantity"
	"fairway/internal/taskqueue"
	"fairway/internal/yamlfile"
)

// Key is a key of the file, of a group or of a user.
type Key struct {
	Name string
	Help string // one line for a person
}

type fileKey struct {
	Key
	read func(*reader, *yaml.Node, *taskqueue.Shares, string)
}

type shareKey struct {
	Key
	group bool // groups have it, and users do not
	read  func(*reader, *yaml.Node, *taskqueue.Share, string)
}

type siteKey struct {
	Key
	read func(*reader, *yaml.Node, *taskqueue.SiteQuota, string)
}

// The tables are made by init, since those of groups refer to themselves.
var (
	fileKeys  []fileKey
	shareKeys []shareKey
	siteKeys  []siteKey
)

func init() {
	siteKeys = []siteKey{
		{Key{"running", "jobs at a time at the site"}, whole(func(q *taskqueue.SiteQuota) *int { return &q.Running })},
		{Key{"cores", "processors of these"}, scalar(quantity.MilliCPUs, func(q *taskqueue.SiteQuota) *int64 { return &q.MilliCPUs })},
	}
	shareKeys = []shareKey{
		{Key{"weight", "part that it gets, relative to the others beside it (default 1); 0: what all others leave"}, false, (*reader).weight},
		{Key{"running", "most jobs that pilots have at a time"}, false, whole(func(s *taskqueue.Share) *int { return &s.Limits.Running })},
		{Key{"cores", "most processors of these"}, false, scalar(quantity.MilliCPUs, func(s *taskqueue.Share) *int64 { return &s.Limits.MilliCPUs })},
		{Key{"queued", "most jobs that wait, in runs that were not stopped; beyond that nothing is submitted"}, false, whole(func(s *taskqueue.Share) *int { return &s.Limits.Queued })},
		{Key{"stored", "size of what its runs may keep in storage, such as 2TB; beyond that none of its jobs starts"}, false, scalar(quantity.Size, func(s *taskqueue.Share) *int64 { return &s.Limits.Stored })},
		{Key{"sites", "by name of a site: `running` and `cores` there"}, false, (*reader).sites},
		{Key{"retention", "how long results of the group are kept that no run names any more, such as 30d (default: that around it; 0: not at all)"}, true, (*reader).shareRetention},
		{Key{"users", "users of the group, by name: a weight, or keys of this table"}, true, (*reader).users},
		{Key{"groups", "groups in it, by name"}, true, (*reader).groups},
	}
	fileKeys = []fileKey{
		{Key{"half_life", "time after which usage counts half (default 7d)"}, scalar(quantity.Duration, func(s *taskqueue.Shares) *time.Duration { return &s.HalfLife })},
		{Key{"overtake", "slot-seconds by which a user may get ahead of the share where a pilot has the input (default 1m; 0: not at all)"}, (*reader).overtake},
		{Key{"retention", "the same as in a group, for groups that do not say (default: that of `serve --retention`)"}, (*reader).retention},
		{Key{"limits", "of what steps ask for under `needs:`, how much all jobs together may have, such as {licence: 5}"}, (*reader).limits},
		{Key{"groups", "groups, by name"}, (*reader).rootGroups},
		{Key{"users", "users who are in no group, by name: a weight, or keys of the table below"}, (*reader).rootUsers},
	}
}

// FileKeys are those of the file.
func FileKeys() (keys []Key) {
	for i := range fileKeys {
		keys = append(keys, fileKeys[i].Key)
	}
	return keys
}

// ShareKeys are those of a group; a user has them but users and groups.
func ShareKeys() (keys []Key) {
	for i := range shareKeys {
		keys = append(keys, shareKeys[i].Key)
	}
	return keys
}

// habits are keys of other systems, and what to write instead.
var habits = map[string]string{
	"fairshare": "write `weight: NUMBER`", "shares": "write `weight: NUMBER`", "share": "write `weight: NUMBER`",
	"maxjobs": "write `running: NUMBER`", "max_jobs": "write `running: NUMBER`", "grpjobs": "write `running: NUMBER`",
	"cpus": "write `cores: NUMBER`", "grpcpus": "write `cores: NUMBER`", "maxsubmitjobs": "write `queued: NUMBER`",
	"accounts": "write `groups:`", "members": "write `users:`", "disk": "write `stored: SIZE`",
	"halflife": "write `half_life: 7d`", "keep": "write `retention: 30d`", "expire": "write `retention: 30d`",
}

type reader struct{ yamlfile.Reader }

// Parse reads a file of shares. file is its name for messages. The error is [yamlfile.Problems].
func Parse(file string, data []byte) (*People, error) {
	r := &reader{yamlfile.Reader{
		File: file, Kind: "file of shares", Limit: MaxFile, Oversize: "name users in groups of others",
		Begin: "start with `groups:` or `users:`",
	}}
	p := &People{}
	if root := r.Root(data); root != nil {
		var names []string
		for i := range fileKeys {
			names = append(names, fileKeys[i].Name)
		}
		nodes := r.Known(root, "the file", names, habits)
		for i := range fileKeys {
			if n := nodes[fileKeys[i].Name]; n != nil {
				fileKeys[i].read(r, n, &p.Shares, fileKeys[i].Name)
			}
		}
	}
	if len(r.Problems) > 0 {
		return nil, r.Problems.Sorted()
	}
	return p, nil
}

func (r *reader) shares(n *yaml.Node, what string, users bool) (list []taskqueue.Share) {
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
			r.weight(v, &s, what+": weight")
		} else if v.Tag != "!!null" {
			r.share(v, &s, what)
		}
		list = append(list, s)
	}
	return list
}

func (r *reader) share(n *yaml.Node, s *taskqueue.Share, what string) {
	var names []string
	for i := range shareKeys {
		if !s.User || !shareKeys[i].group {
			names = append(names, shareKeys[i].Name)
		}
	}
	nodes := r.Known(n, what, names, habits)
	for i := range shareKeys {
		if n := nodes[shareKeys[i].Name]; n != nil {
			shareKeys[i].read(r, n, s, what+": "+shareKeys[i].Name)
		}
	}
}

func (r *reader) weight(n *yaml.Node, s *taskqueue.Share, what string) {
	if text, ok := r.Text(n, what); ok {
		if s.Weight = r.Integer(n, text, what, 0); s.Weight > maxWeight {
			r.Fail(yamlfile.Follow(n), fmt.Sprintf("write a number up to %d", maxWeight), "%s is %d", what, s.Weight)
		}
	}
}

// maxWeight bounds weights, so that their sums stay exact.
const maxWeight = 1 << 31

func (r *reader) users(n *yaml.Node, s *taskqueue.Share, what string) {
	s.Of = append(s.Of, r.shares(n, what, true)...)
}

func (r *reader) groups(n *yaml.Node, s *taskqueue.Share, what string) {
	s.Of = append(s.Of, r.shares(n, what, false)...)
}

func (r *reader) rootUsers(n *yaml.Node, s *taskqueue.Shares, what string) {
	s.Of = append(s.Of, r.shares(n, what, true)...)
}

func (r *reader) rootGroups(n *yaml.Node, s *taskqueue.Shares, what string) {
	s.Of = append(s.Of, r.shares(n, what, false)...)
}

func (r *reader) overtake(n *yaml.Node, s *taskqueue.Shares, what string) {
	if text, ok := r.Text(n, what); ok {
		if s.Overtake = -1; text != "0" {
			s.Overtake = yamlfile.Scalar(&r.Reader, n, text, what, quantity.Duration)
		}
	}
}

func (r *reader) retention(n *yaml.Node, s *taskqueue.Shares, what string) {
	s.Retention = r.keeps(n, what)
}

func (r *reader) shareRetention(n *yaml.Node, s *taskqueue.Share, what string) {
	s.Retention = r.keeps(n, what)
}

// keeps reads how long results are kept: negative where that is not at all.
func (r *reader) keeps(n *yaml.Node, what string) time.Duration {
	text, ok := r.Text(n, what)
	if !ok || text == "0" {
		return -1
	}
	return yamlfile.Scalar(&r.Reader, n, text, what, quantity.Duration)
}

func (r *reader) limits(n *yaml.Node, s *taskqueue.Shares, what string) {
	s.Limits = map[string]int64{}
	for _, f := range r.Mapping(n, what) {
		if text, ok := r.Text(f.Value, what+": "+f.Key.Value); ok {
			s.Limits[f.Key.Value] = r.Integer(f.Value, text, what+": "+f.Key.Value, 0)
		}
	}
}

func (r *reader) sites(n *yaml.Node, s *taskqueue.Share, what string) {
	s.Limits.Sites = map[string]taskqueue.SiteQuota{}
	for _, f := range r.Mapping(n, what) {
		what := fmt.Sprintf("%s: %s", what, f.Key.Value)
		var q taskqueue.SiteQuota
		nodes := r.Known(f.Value, what, []string{siteKeys[0].Name, siteKeys[1].Name}, habits)
		for i := range siteKeys {
			if n := nodes[siteKeys[i].Name]; n != nil {
				siteKeys[i].read(r, n, &q, what+": "+siteKeys[i].Name)
			}
		}
		s.Limits.Sites[f.Key.Value] = q
	}
}

func whole[T any](field func(*T) *int) func(*reader, *yaml.Node, *T, string) {
	return func(r *reader, n *yaml.Node, of *T, what string) {
		if text, ok := r.Text(n, what); ok {
			*field(of) = int(r.Integer(n, text, what, 1))
		}
	}
}

func scalar[S, T any](parse func(string) (T, error), field func(*S) *T) func(*reader, *yaml.Node, *S, string) {
	return func(r *reader, n *yaml.Node, of *S, what string) {
		if text, ok := r.Text(n, what); ok {
			*field(of) = yamlfile.Scalar(&r.Reader, n, text, what, parse)
		}
	}
}
