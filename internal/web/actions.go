package web

import (
	"errors"
	"net/http"
	"strconv"

	"connectrpc.com/connect"

	"fairway/internal/server/api"
	"fairway/internal/wire"
)

// act carries out what a person wants of a run, and leads back to where it was wanted. call is what it
// is called in the audit log.
func (s *site) act(w http.ResponseWriter, r *http.Request, call string, do func(run api.Page, job []string) error) {
	run, err := runOf(r)
	if err == nil {
		r.Body = http.MaxBytesReader(w, r.Body, formLimit)
		err = r.ParseForm()
	}
	var jobs []string
	back := runPath(run)
	if job := r.PostFormValue("job"); job != "" && err == nil {
		number, wrong := strconv.ParseUint(job, 10, 32)
		if wrong != nil {
			err = connect.NewError(connect.CodeInvalidArgument, errors.New("a job is named by its number"))
		}
		jobs, back = []string{job}, back+"/jobs/"+strconv.FormatUint(number, 10)
	}
	if err == nil {
		err = do(run, jobs)
	}
	if s.Door != nil {
		about := ""
		if len(jobs) > 0 {
			about = "jobs " + jobs[0]
		}
		s.Door.Acted(r.Context(), r.RemoteAddr, call, uint32(run), about, err)
	}
	if err != nil {
		s.fail(w, err)
		return
	}
	http.Redirect(w, r, back, http.StatusSeeOther)
}

// formLimit bounds what a form sends, in bytes.
const formLimit = 4 << 10

// retry lets a job run again, or all that failed.
func (s *site) retry(w http.ResponseWriter, r *http.Request) {
	s.act(w, r, "Retry", func(run api.Page, jobs []string) error {
		_, err := s.Service.Retry(r.Context(), &wire.RetryRequest{Run: uint32(run), Jobs: jobs})
		return err
	})
}

// cancel ends a job.
func (s *site) cancel(w http.ResponseWriter, r *http.Request) {
	s.act(w, r, "Cancel", func(run api.Page, jobs []string) error {
		if len(jobs) == 0 {
			return connect.NewError(connect.CodeInvalidArgument, errors.New("no job is named"))
		}
		_, err := s.Service.Cancel(r.Context(), &wire.CancelRequest{Run: uint32(run), Jobs: jobs})
		return err
	})
}

// stop ends a run when what runs has ended.
func (s *site) stop(w http.ResponseWriter, r *http.Request) {
	s.act(w, r, "Stop", func(run api.Page, _ []string) error {
		number, err := s.Service.Number(r.Context(), run) // 0 would be the server itself
		if err == nil {
			_, err = s.Service.Stop(r.Context(), &wire.StopRequest{Run: uint32(number), Drain: true})
		}
		return err
	})
}
