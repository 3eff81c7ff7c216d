package dispatch

// tell has the pilot answered at the end of this step, or as soon as it syncs.
func (fl *fleet) tell(p *pilot) {
	p.news = true
	if !p.listed {
		p.listed = true
		fl.work.news = append(fl.work.news, p)
	}
}

func (c *Core) answerAll() {
	for _, p := range c.work.news {
		p.listed = false
		if p.held == 0 || p.left {
			continue
		}
		c.reply(p, c.answer(p))
		p.held, p.news = 0, false
		c.fleet.updateParked(p)
	}
	c.work.news = c.work.news[:0]
}

// answer says all that the pilot has not confirmed; so a lost answer needs no
// repair.
func (c *Core) answer(p *pilot) Answer {
	n := c.fleet.nextAnswer()
	if p.base == 0 {
		p.base = n
	}
	a := Answer{
		Number: n, Seen: p.seq, NeedFull: p.needFull, NextSync: c.config.Hold,
		Leave: c.fleet.stop == draining || p.info.Error != "", LeaveNow: c.fleet.stop == stopped, Peers: p.peers(),
	}
	for _, x := range p.attempts {
		if x.ended {
			if x.endNumber == 0 {
				x.endNumber = n
			}
			a.End = append(a.End, x.id)
			continue
		}
		if x.known() || x.number != 0 && x.number <= p.acked {
			continue
		}
		if x.number == 0 {
			x.number = n
		}
		if a.Run == nil {
			a.Run = c.runSlab.Take(1)[:0]
		}
		a.Run = append(a.Run, Assignment{})
		c.describeTo(&a.Run[len(a.Run)-1], x)
	}
	for i := range p.ending {
		e := &p.ending[i]
		if e.number == 0 {
			e.number = n
		}
		a.End = append(a.End, e.attempt)
	}
	c.placement.advise(p, &a)
	p.toldToLeave = a.Leave || a.LeaveNow
	p.due = c.now
	if p.polls {
		p.due = c.now.after(a.NextSync)
	}
	p.silentAfter = c.now.after(a.NextSync + c.config.PilotLease)
	c.fleet.armPilot(p)
	return a
}

// describeTo says in an answer what the attempt is to run.
func (c *Core) describeTo(a *Assignment, x *attempt) {
	j := x.job
	*a = Assignment{
		Job: j.id, Attempt: x.id, Name: j.name, Step: j.step.Step, Try: x.try, Payload: j.payload,
		Needs: x.needs.needs, Inputs: c.inputSlab.Take(len(j.requests))[:0],
		Outputs: c.outputSlab.Take(len(j.outputs)), Private: j.fate != nil && j.fate.Private,
	}
	for i := range j.requests {
		r := &j.requests[i]
		if v := r.read; v != nil {
			a.Inputs = append(a.Inputs, c.files.inputFor(x.pilot, v))
		}
		if v := r.write; v != nil {
			a.Outputs[r.output] = OutputFile{Output: j.outputs[r.output], Version: v.number}
		}
	}
}

// peers are the other pilots of the host that share their caches (section
// IV-D).
func (p *pilot) peers() []Peer {
	if p.host.shares == 0 {
		return nil
	}
	var list []Peer
	for _, o := range p.host.pilots {
		if o != p && o.info.CacheDir != "" {
			list = append(list, Peer{Pilot: o.id, CacheDir: o.info.CacheDir, CacheSize: o.info.CacheSize})
		}
	}
	return list
}
