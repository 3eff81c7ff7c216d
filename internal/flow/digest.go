package flow

import (
	"encoding/binary"
	"encoding/hex"
	"hash"
	"sort"

	"github.com/zeebo/blake3"
)

// digestFormat changes whenever the same command would mean something else.
const digestFormat = "fairway job 1"

// digest identifies all that decides the outputs of a job besides the
// contents of what it reads: the command, its variables and the names of its
// files. What it needs, where it runs and how often it is retried are left
// out.
func digest(j NewJob) string {
	h := blake3.New()
	hashText(h, digestFormat)
	hashText(h, j.Command.Shell)
	hashTexts(h, j.Command.Argv)
	names := sortedKeys(j.Command.Environment)
	for i, name := range names {
		names[i] = name + "=" + j.Command.Environment[name]
	}
	hashTexts(h, names)
	hashTexts(h, j.Job.Reads)
	var writes []string
	for _, w := range j.Job.Writes {
		writes = append(writes, w.LFN)
	}
	hashTexts(h, writes)
	hashReplay(h, j.Command)
	return hex.EncodeToString(h.Sum(nil)[:16])
}

func hashReplay(h hash.Hash, c Command) {
	var names []string
	for _, n := range c.Names {
		names = append(names, n.LFN, n.Path)
	}
	hashTexts(h, names)
	if c.Replay == nil {
		return
	}
	hashText(h, c.Replay.Program)
	hashNumber(h, uint64(c.Replay.Compute))
	writes := append([]SizedFile(nil), c.Replay.Writes...)
	sort.Slice(writes, func(i, j int) bool { return writes[i].LFN < writes[j].LFN })
	for _, w := range writes {
		hashText(h, w.LFN)
		hashNumber(h, uint64(w.Size))
	}
}

func hashTexts(h hash.Hash, texts []string) {
	hashNumber(h, uint64(len(texts)))
	for _, t := range texts {
		hashText(h, t)
	}
}

func hashText(h hash.Hash, text string) {
	hashNumber(h, uint64(len(text)))
	_, _ = h.Write([]byte(text))
}

func hashNumber(h hash.Hash, n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	_, _ = h.Write(b[:])
}
