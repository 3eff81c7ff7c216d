package rights

// Calls says what each call of the API is, by its path. A call that is not here is refused.
var Calls = map[string]Action{
	"/fairway.v1.Workflow/Progress":       Look,
	"/fairway.v1.Workflow/ListJobs":       Look,
	"/fairway.v1.Workflow/ShowJob":        Look,
	"/fairway.v1.Workflow/Explain":        Look,
	"/fairway.v1.Workflow/ListFiles":      Look,
	"/fairway.v1.Workflow/ListCaches":     Look,
	"/fairway.v1.Workflow/Logs":           Look,
	"/fairway.v1.Workflow/Fetch":          Look,
	"/fairway.v1.Workflow/Endings":        Look,
	"/fairway.v1.Workflow/ListRuns":       Look,
	"/fairway.v1.Workflow/ListPilots":     Watch,
	"/fairway.v1.Workflow/ListShares":     Watch,
	"/fairway.v1.Workflow/Cancel":         Change,
	"/fairway.v1.Workflow/Retry":          Change,
	"/fairway.v1.Workflow/Prioritize":     Change,
	"/fairway.v1.Workflow/CloseInput":     Change,
	"/fairway.v1.Workflow/Stop":           Change, // of a run; to stop the server is to administer
	"/fairway.v1.Workflow/RemoveRuns":     Change,
	"/fairway.v1.Workflow/Submit":         Submit,
	"/fairway.v1.Workflow/SubmitWorkflow": Submit,
	"/fairway.v1.Workflow/Upload":         Submit,

	"/fairway.v1.Rights/WhoAmI":      Look,
	"/fairway.v1.Rights/LoginWay":    Anybody,
	"/fairway.v1.Rights/Login":       Anybody, // the proof comes with it
	"/fairway.v1.Rights/ListTokens":  Look,    // one's own
	"/fairway.v1.Rights/RevokeToken": Look,    // one's own
	"/fairway.v1.Rights/CreateToken": Administer,
	"/fairway.v1.Rights/ListAudit":   Administer,

	"/fairway.v1.TaskQueue/Sync": Work,
}

// Pages says what each page and other route for browsers is, by its pattern. A route that is not here
// is refused.
var Pages = map[string]Action{
	"GET /{$}":                          Look,
	"GET /pilots":                       Watch,
	"GET /shares":                       Watch,
	"GET /runs/{run}":                   Look,
	"GET /runs/{run}/jobs":              Look,
	"GET /runs/{run}/jobs/{id}":         Look,
	"GET /runs/{run}/jobs/{id}/log":     Look,
	"GET /runs/{run}/jobs/{id}/log.txt": Look,
	"GET /runs/{run}/failures":          Look,
	"GET /runs/{run}/files":             Look,
	"GET /runs/{run}/file":              Look,
	"GET /runs/{run}/files.zip":         Look,
	"GET /runs/{run}/slots":             Look,
	"GET /runs/{run}/series":            Look,
	"GET /runs/{run}/data":              Look,
	"GET /runs/{run}/why":               Look,
	"GET /runs/{run}/ask/{action}":      Change, // the question before it is done
	"POST /runs/{run}/retry":            Change,
	"POST /runs/{run}/cancel":           Change,
	"POST /runs/{run}/stop":             Change,
	"POST /runs/{run}/end":              Change,
	"POST /runs/{run}/remove":           Change,
	"GET /metrics":                      Watch,
	"GET /login":                        Anybody,
	"POST /login":                       Anybody, // the proof comes with it
	"POST /logout":                      Anybody, // of one's own session
	"GET /healthz":                      Anybody,
	"GET /readyz":                       Anybody,
	"GET /static/{name}":                Anybody,
	"/":                                 Look, // says that there is no such page
}

// Audited reports whether an action is written down: whatever may change something. What people only
// look at is not.
func (a Action) Audited() bool { return a == Change || a == Submit || a == Administer }
