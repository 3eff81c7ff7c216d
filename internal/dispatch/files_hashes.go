package dispatch

import (
	"encoding/hex"

	"fairway/internal/taskqueue"
)

// knownHash is the hash of the contents of a version.
type knownHash struct {
	sum string            // 32 bytes; empty: unknown
	by  taskqueue.PilotID // of an output: who has told it (fleet.hashTold); empty: it stands in the commit
}

func (fs *files) hash(v *version) knownHash { return knownHash{fs.hashes[v], fs.tellers[v]} }

func (h knownHash) text() string { return hex.EncodeToString([]byte(h.sum)) }

// committed is the hash as the commit has it; empty: it has none.
func (h knownHash) committed() string {
	if h.by != "" {
		return ""
	}
	return h.text()
}

// setHash takes note of the hash that copies of a version must have, in hexadecimal, and of who
// has told it (knownHash.by); empty: it is not known.
func (fs *files) setHash(v *version, hash string, by taskqueue.PilotID) {
	delete(fs.tellers, v)
	sum, err := hex.DecodeString(hash)
	if err != nil || len(sum) == 0 {
		delete(fs.hashes, v)
		return
	}
	if fs.hashes[v] = string(sum); by != "" && v.writer != nil {
		fs.tellers[v] = by
	}
}

// noteProof notes what tells the contents of an output: its adler32, or the time when it was written.
func (v *version) noteProof(adler32, written uint32) {
	v.proof, v.timed = adler32, false
	if adler32 == 0 {
		v.proof, v.timed = written, true
	}
}

// adler32 is that of the contents, or 0.
func (v *version) adler32() uint32 {
	if v.timed {
		return 0
	}
	return v.proof
}

// written is WrittenFile.Written, or 0.
func (v *version) written() uint32 {
	if v.timed {
		return v.proof
	}
	return 0
}

// toldHash is what a pilot has found in a copy that it was told to get.
type toldHash struct {
	by   *pilot
	hash string
}

// hashTold takes the hash that a pilot has found in a copy that it was told to get. The first hash
// counts; while another pilot is the origin, only that pilot can tell the first. Where the commit
// of an output has an adler32 only, two hashes contradict each other: then neither counts.
func (fl *fleet) hashTold(p *pilot, v *version, hash string) {
	known, origin := fl.files.hash(v), fl.origin(v)
	switch {
	case known.sum == "" && origin != nil && origin.to != p:
		origin.told = append(origin.told, toldHash{p, hash})
	case known.sum == "":
		fl.files.setHash(v, hash, p.id)
	case known.by != "" && known.by != p.id && v.adler32() != 0 && known.text() != hash:
		fl.files.setHash(v, "", "")
		if q := fl.pilots[known.by]; q != nil && q.holds(v) {
			fl.differs(q, v, true)
		}
	}
}

// differs takes note of whether a pilot holds other bytes of a version than are known. Then it
// is no source of it, until its copy has gone.
func (fl *fleet) differs(p *pilot, v *version, other bool) {
	holds := p.copies.cached[v]
	if other && !holds.other {
		fl.event(taskqueue.Event{Kind: taskqueue.CopyDiffers, Pilot: p.id, Host: p.host.name, Reason: v.file.lfn})
	}
	holds.other = other
	p.copies.cached[v] = holds
}

// origin is the arrival by which the version comes from storage.
func (fl *fleet) origin(v *version) *arrival {
	for _, x := range fl.sources.arriving[v] {
		if x.from == nil && x.to.info.Address != "" && !x.to.left {
			return x
		}
	}
	return nil
}

// arrived is for a copy that has come into a cache, with the hash that its pilot has found;
// empty: none. Nobody tells the first hash but who was told to get the file ([fleet.hashTold]), or
// after a restart a pilot that was there before and returns.
func (fl *fleet) arrived(p *pilot, v *version, hash string) {
	if hash != "" && (p.info.Address != "" || fl.groupCache(p)) {
		if _, ok := fl.grace.awaited[p.id]; ok && !fl.grace.over && fl.files.hashes[v] == "" {
			fl.files.setHash(v, hash, p.id)
		}
		known := fl.files.hash(v)
		fl.differs(p, v, known.sum != "" && known.text() != hash)
	}
	if x := p.arrivalOf(v); x != nil {
		if x.from != nil {
			p.host.cut = nil
		}
		fl.endArrival(x)
	}
}

// groupCache reports whether the pilot reads files of other users on its host: by their hashes.
func (fl *fleet) groupCache(p *pilot) bool {
	return p.launch != nil && p.launch.site != nil && p.launch.site.GroupCache
}

// wasTold reports whether the pilot was told to get a version: it comes from where the TaskQueue has
// said, or, where pilots read each other's files without being told, it is read by an attempt of
// this one, of the first maxPassed requests for it.
func (fl *fleet) wasTold(p *pilot, v *version) bool {
	if p.arrivalOf(v) != nil {
		return true
	}
	if !fl.groupCache(p) || v.writer != nil || fl.files.hashes[v] != "" {
		return false
	}
	passed := 0
	for r := v.file.fifo.Head(); r != nil && passed < maxPassed; r = r.Next() {
		if j := r.Owner.job; r.Owner.read == v && j.attempt != nil && j.attempt.pilot == p {
			return true
		}
		passed++
	}
	return false
}

// takeHashes takes the hashes of files that the pilot was told to get.
func (c *Core) takeHashes(p *pilot, files []taskqueue.CachedFile) {
	for i := range files {
		f := &files[i]
		if f.Hash == "" {
			continue
		}
		if v := c.files.copied(p, f.File); v != nil && v.tag == f.File.Tag && c.fleet.wasTold(p, v) {
			c.fleet.hashTold(p, v, f.Hash)
		}
	}
}
