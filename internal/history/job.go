package history

import "fairway/internal/wire"

// Of takes from a job what is recorded of it.
func Of(detail *wire.JobDetail) Job { return of(detail, false) }

// Earlier takes from a job whose result is that of an earlier run what is recorded of the attempt
// that made it.
func Earlier(detail *wire.JobDetail) Job { return of(detail, true) }

func of(detail *wire.JobDetail, earlier bool) Job {
	s := detail.GetSummary()
	job := Job{
		ID: s.GetId(), Name: s.GetName(), Step: s.GetStep(), State: s.GetState(), Reason: s.GetReason(),
		Submitted: s.GetSubmitted().AsTime(),
		Priority:  int(detail.GetPriority()), MilliCPUs: detail.GetNeeds().GetMilliCpus(),
		Reads: filesOf(detail.GetReads()), Writes: filesOf(detail.GetWrites()),
	}
	for _, file := range detail.GetReads() {
		if file.GetWriter() != 0 {
			job.After = append(job.After, file.GetWriter())
		}
	}
	for _, a := range detail.GetAttempts() {
		u := a.GetResult().GetUsage()
		if a.GetResult() == nil || a.GetEarlier() != earlier {
			continue
		}
		attempt := Attempt{
			Pilot: a.GetPilot(), Host: a.GetHost(), Outcome: a.GetOutcome(),
			Failed:    a.GetResult().GetOutcome() != wire.Outcome_OUTCOME_SUCCEEDED,
			BytesRead: u.GetBytesStaged() + u.GetBytesCached(), BytesCached: u.GetBytesCached(), BytesOut: u.GetBytesWritten(),
			MaxRSS: u.GetMaxRssBytes(), StagedAhead: u.GetStagedAhead().AsDuration(),
			CPU: u.GetCpu().AsDuration(), CacheHits: int(u.GetCacheHits()), RemoteHits: int(u.GetRemoteHits()),
		}
		if u.GetStageInStart() != nil {
			attempt.StageIn = u.GetStageInStart().AsTime()
		}
		if u.GetStart() != nil {
			attempt.Start = u.GetStart().AsTime()
		}
		if u.GetEnd() != nil {
			attempt.End = u.GetEnd().AsTime()
		}
		if u.GetStageOutEnd() != nil {
			attempt.StageOut = u.GetStageOutEnd().AsTime()
		}
		job.Attempts = append(job.Attempts, attempt)
	}
	return job
}

func filesOf(files []*wire.FileDetail) (all []File) {
	for _, f := range files {
		all = append(all, File{
			LFN: f.GetLfn(), Version: f.GetVersion(), Size: f.GetSize(), Writer: f.GetWriter(),
			Streamed: f.GetAccess() == "stream", CacheOnly: f.GetAvailable() && f.GetPfn() == "",
		})
	}
	return all
}
