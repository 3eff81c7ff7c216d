package web

import (
	"cmp"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"fairway/internal/rights"
	"fairway/internal/server/api"
	"fairway/internal/taskqueue"
	"fairway/internal/wire"
)

// runs is the first page of a server that takes workflows. Of one run, that of the run is.
func (s *site) runs(r *http.Request) (*content, error) {
	if !s.Service.IsLasting() {
		run, err := s.Service.Number(r.Context(), 0)
		if err != nil {
			return nil, err
		}
		return nil, elsewhere(runPath(run))
	}
	q := &wire.ListRunsRequest{Text: r.FormValue("text"), Before: uint32(number(r, "before")), Limit: runsListed}
	body := &runsBody{Search: q, State: r.FormValue("state")}
	if body.State != "" {
		q.States = []string{body.State}
	}
	var err error
	if body.ListRunsResponse, err = s.Service.ListRuns(r.Context(), q); err != nil {
		return nil, err
	}
	if body.Sites, body.Waiting, err = s.Service.Sites(r.Context()); err != nil {
		return nil, err
	}
	return &content{Title: "Runs", Body: body}, nil
}

// runsListed is how many runs are on a page.
const runsListed = 100

type runsBody struct {
	*wire.ListRunsResponse
	Search  *wire.ListRunsRequest
	State   string
	Sites   []taskqueue.SiteView
	Waiting []string
}

// Page is the address of the runs before one that the same search finds; 0: of the newest.
func (b *runsBody) Page(before uint32) string {
	q := url.Values{}
	for name, value := range map[string]string{"state": b.State, "text": b.Search.Text} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if before > 0 {
		q.Set("before", strconv.FormatUint(uint64(before), 10))
	}
	return "/?" + q.Encode()
}

// Older is the address of the runs before those that are shown; empty: there are none.
func (b *runsBody) Older() string {
	if n := len(b.GetRuns()); b.GetMore() && n > 0 {
		return b.Page(b.GetRuns()[n-1].GetRun())
	}
	return ""
}

// shares tells how people share the server, and what each may have.
func (s *site) shares(r *http.Request) (*content, error) {
	list, err := s.Service.ListShares(r.Context(), &wire.ListSharesRequest{})
	if err != nil {
		return nil, err
	}
	return &content{Title: "Shares and quotas", Body: list}, nil
}

func runPath(run api.Page) string { return "/runs/" + strconv.Itoa(int(run)) }

func (s *site) about(r *http.Request) (*content, *api.Overview, error) {
	run, err := runOf(r)
	if err != nil {
		return nil, nil, err
	}
	o, err := s.Service.Overview(r.Context(), run)
	if err != nil {
		return nil, nil, err
	}
	over := !o.Live || !s.Service.IsLasting() && o.Report.GetEnded()
	return &content{Run: api.Page(o.Run), Name: o.Report.GetWorkflow(), Over: over}, o, nil
}

type runBody struct {
	*api.Overview
	Total  *tally
	When   when
	Stuck  []reason
	Graph  *drawing
	Failed *failed
	About  *wire.RunSummary // nil: it is the run of a folder
}

type failed struct {
	Run     api.Page
	Retries bool // who looks may have each run again
	Groups  []*api.FailureGroup
	All     int   // groups that can be looked at
	From    int   // of which so many are before these
	Jobs    int64 // of what is after these: how many, and
	Reasons int   // messages
	Next    int   // where the groups after begin; 0: there are none
}

// Groups of failures on the first page of a run, and on that of failures.
const (
	failuresShown  = 3
	failuresListed = 20
)

// failedFrom are so many groups from one on.
func failedFrom(run api.Page, all *api.FailureGroups, from, most int) *failed {
	from = min(from, len(all.Groups))
	end := min(from+most, len(all.Groups))
	f := &failed{
		Run: run, Groups: all.Groups[from:end], All: len(all.Groups), From: from, Jobs: all.Rest,
		Reasons: all.Messages + len(all.Groups) - end,
	}
	for _, g := range all.Groups[end:] {
		f.Jobs += g.Jobs
	}
	if end < len(all.Groups) {
		f.Next = end
	}
	return f
}

// Before is where the groups before begin.
func (f *failed) Before() int { return max(0, f.From-failuresListed) }

// run is the page that says when a run is done, and what it is stuck on.
func (s *site) run(r *http.Request) (*content, error) {
	c, o, err := s.about(r)
	if err != nil {
		return nil, err
	}
	graph, err := s.Service.Graph(r.Context(), c.Run)
	if err != nil {
		return nil, err
	}
	groups, err := s.Service.Failures(r.Context(), c.Run)
	if err != nil {
		return nil, err
	}
	body := &runBody{
		Overview: o, Total: totalOf(o.Report.GetSteps()), Graph: draw(c.Run, graph),
		Failed: failedFrom(c.Run, groups, 0, failuresShown),
	}
	if s.Service.IsLasting() {
		if body.About, err = s.Service.RunOf(r.Context(), c.Run); err != nil {
			return nil, err
		}
	}
	body.When = whenDone(o, body.Total)
	body.Stuck = s.stuckOn(r.Context(), o, body.Total)
	if body.Parameters == nil {
		body.Parameters = body.About.GetParameters()
	}
	c.Title, c.Body = "Overview", body
	return c, nil
}

type jobsBody struct {
	*api.FoundJobs
	Run         api.Page
	Search      api.JobSearch
	Steps       []*wire.StepProgress
	First, Last uint32 // numbers of the jobs that are shown
}

// jobsListed is how many jobs are on a page.
const jobsListed = 50

func (s *site) jobs(r *http.Request) (*content, error) {
	c, o, err := s.about(r)
	if err != nil {
		return nil, err
	}
	q := api.JobSearch{
		State: r.FormValue("state"), Step: r.FormValue("step"), Text: r.FormValue("text"), Message: r.FormValue("message"),
		After: uint32(number(r, "after")), Before: uint32(number(r, "before")), Limit: jobsListed,
	}
	found, err := s.Service.SearchJobs(r.Context(), c.Run, q)
	if err != nil {
		return nil, err
	}
	body := &jobsBody{FoundJobs: found, Run: c.Run, Search: q, Steps: o.Report.GetSteps()}
	if n := len(found.Jobs); n > 0 {
		body.First, body.Last = found.Jobs[0].GetId(), found.Jobs[n-1].GetId()
	}
	c.Title, c.Body = "Jobs", body
	return c, nil
}

// Page is the address of other jobs of the same search.
func (b *jobsBody) Page(after, before uint32) string {
	q := url.Values{}
	for name, value := range map[string]string{
		"state": b.Search.State, "step": b.Search.Step, "text": b.Search.Text, "message": b.Search.Message,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	for name, value := range map[string]uint32{"after": after, "before": before} {
		if value > 0 {
			q.Set(name, strconv.FormatUint(uint64(value), 10))
		}
	}
	return runPath(b.Run) + "/jobs?" + q.Encode()
}

type jobBody struct {
	*wire.JobDetail
	Run  api.Page
	Now  time.Time
	Why  []string
	Wait []*wire.WaitsFor
	// Printed is the attempt whose log is shown; 0: none.
	Printed uint64
	Runs    bool // it has not ended
	Files   []jobFile
}

type jobFile struct {
	*wire.FileDetail
	Writes bool
	Hosts  []string // that have it in their caches
	Lost   string
}

// filesShown bounds the files of a job on its page, and whereLooked those of which it tells where
// they are.
const (
	filesShown  = 200
	whereLooked = 40
)

func (s *site) job(r *http.Request) (*content, error) {
	c, o, err := s.about(r)
	if err != nil {
		return nil, err
	}
	ctx, name, run := r.Context(), jobOf(r), uint32(c.Run)
	detail, err := s.Service.ShowJob(ctx, &wire.ShowJobRequest{Job: name, Run: run})
	if err != nil {
		return nil, err
	}
	body := &jobBody{JobDetail: detail, Run: c.Run, Now: o.Now}
	if why, err := s.Service.Explain(ctx, &wire.ExplainRequest{Job: name, Run: run}); err == nil {
		body.Why, body.Wait = why.GetLines(), why.GetWaitsFor()
	}
	for _, attempt := range detail.GetAttempts() {
		if attempt.GetTask() == 0 || attempt.GetResult() != nil { // of tasks that run, the first
			body.Printed = attempt.GetAttempt()
		}
		body.Runs = attempt.GetResult() == nil
	}
	if asked, err := strconv.ParseUint(r.FormValue("attempt"), 10, 64); err == nil {
		body.Printed = asked
	}
	for _, file := range detail.GetReads() {
		body.Files = append(body.Files, jobFile{FileDetail: file})
	}
	for _, file := range detail.GetWrites() {
		body.Files = append(body.Files, jobFile{FileDetail: file, Writes: true})
	}
	body.Files = body.Files[:min(len(body.Files), filesShown)]
	if err := s.whereTheyAre(r, body); err != nil {
		return nil, err
	}
	c.Title, c.Body = detail.GetSummary().GetName(), body
	return c, nil
}

// whereTheyAre finds the hosts that have files of a job in their caches.
func (s *site) whereTheyAre(r *http.Request, body *jobBody) error {
	for i := range body.Files[:min(len(body.Files), whereLooked)] {
		file := &body.Files[i]
		if file.GetPattern() {
			continue
		}
		versions, err := s.Service.Versions(r.Context(), body.Run, file.GetLfn())
		if err != nil {
			return err
		}
		for _, v := range versions {
			if v.GetVersion() == file.GetVersion() {
				file.Hosts, file.Lost = v.GetHosts(), v.GetLost()
			}
		}
	}
	return nil
}

func (s *site) failures(r *http.Request) (*content, error) {
	c, o, err := s.about(r)
	if err != nil {
		return nil, err
	}
	groups, err := s.Service.Failures(r.Context(), c.Run)
	if err != nil {
		return nil, err
	}
	shown := failedFrom(c.Run, groups, number(r, "from"), failuresListed)
	shown.Retries = rights.Of(r.Context()).Role.May(rights.Change) && !o.Report.GetSucceeded()
	c.Title, c.Body = "Failures", &runBody{Overview: o, Total: totalOf(o.Report.GetSteps()), Failed: shown}
	return c, nil
}

type slotsBody struct {
	*api.Slots
	Run        api.Page
	From, Next int
	Chart      *chart
}

// lanesShown is of how many pilots a page tells.
const lanesShown = 40

func (s *site) slots(r *http.Request) (*content, error) {
	c, _, err := s.about(r)
	if err != nil {
		return nil, err
	}
	from := number(r, "from")
	slots, err := s.Service.Slots(r.Context(), c.Run, from, lanesShown)
	if err != nil {
		return nil, err
	}
	body := &slotsBody{Slots: slots, Run: c.Run, From: from, Chart: drawSlots(c.Run, slots, c.Over)}
	if from+lanesShown < slots.Pilots {
		body.Next = from + lanesShown
	}
	c.Title, c.Body = "Slots", body
	return c, nil
}

// Back is where the page before begins.
func (b *slotsBody) Back() int { return max(0, b.From-lanesShown) }

type dataBody struct {
	*wire.ListCachesResponse
	Flows []flowRow
	Usage *wire.Summary
}

type flowRow struct {
	api.Flow
	Share float64 // of the largest, in percent
}

func (s *site) data(r *http.Request) (*content, error) {
	c, o, err := s.about(r)
	if err != nil {
		return nil, err
	}
	caches, err := s.Service.ListCaches(r.Context(), &wire.ListCachesRequest{Run: uint32(c.Run)})
	if err != nil {
		return nil, err
	}
	flows, err := s.Service.Flows(r.Context(), c.Run)
	if err != nil {
		return nil, err
	}
	body := &dataBody{ListCachesResponse: caches, Usage: o.Report.GetSummary()}
	most := int64(1)
	for _, f := range flows {
		most = max(most, f.Bytes)
	}
	for _, f := range flows {
		body.Flows = append(body.Flows, flowRow{f, 100 * float64(f.Bytes) / float64(most)})
	}
	c.Title, c.Body = "Data", body
	return c, nil
}

type pilotsBody struct {
	Sites   []taskqueue.SiteView
	Waiting []string
	*wire.ListPilotsResponse
	Shown []*wire.PilotSummary
	From  int
	Next  int
	All   int
}

// pilotsShown is how many pilots are on a page.
const pilotsShown = 100

func (s *site) pilots(r *http.Request) (*content, error) {
	sites, waiting, err := s.Service.Sites(r.Context())
	if err != nil {
		return nil, err
	}
	list, err := s.Service.ListPilots(r.Context(), &wire.ListPilotsRequest{})
	if err != nil {
		return nil, err
	}
	body := &pilotsBody{Sites: sites, Waiting: waiting, ListPilotsResponse: list, All: len(list.GetPilots())}
	body.From = min(number(r, "from"), body.All)
	end := min(body.From+pilotsShown, body.All)
	body.Shown = list.GetPilots()[body.From:end]
	if end < body.All {
		body.Next = end
	}
	return &content{Title: "Sites and pilots", Body: body}, nil
}

type tally struct {
	wire.StepProgress
}

func totalOf(steps []*wire.StepProgress) *tally {
	t := &tally{}
	t.TotalFinal = true
	for _, s := range steps {
		t.Total += s.GetTotal()
		t.TotalFinal = t.TotalFinal && s.GetTotalFinal()
		t.Waiting += s.GetWaiting()
		t.Ready += s.GetReady()
		t.Queued += s.GetQueued()
		t.Running += s.GetRunning()
		t.Done += s.GetDone()
		t.Reused += s.GetReused()
		t.Failed += s.GetFailed()
		t.Blocked += s.GetBlocked()
		t.Cancelled += s.GetCancelled()
	}
	return t
}

func largest(steps []*wire.StepProgress) (step *wire.StepProgress) {
	for _, s := range steps {
		if step == nil || cmp.Compare(left(s), left(step)) > 0 {
			step = s
		}
	}
	return step
}

func left(s *wire.StepProgress) int64 {
	return s.GetWaiting() + s.GetReady() + s.GetQueued() + s.GetRunning()
}
