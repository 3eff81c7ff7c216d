package stage

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"fairway/internal/pilot/report"
	"fairway/internal/storage"
	"fairway/internal/wire"
)

// An input with the access "stream" is not brought here: its command reads it where it is
// stored. A file that this node sees is linked by a symbolic link; of any other the command
// gets the URL, in its variables and in the files that these name, all of which only the
// user may read. Nothing can be verified before it is read, so what tells the state of the
// file is compared before the command starts and after it has ended.
//
// What is in a cache of the host is linked from there, and what no program of this node can
// read from where it is stored is staged in, as any other input.

// urlMargin is how much longer than its command may run a URL is good that permits to read.
const urlMargin = 10 * time.Minute

// streams reports whether the input is left where it is stored.
func (i *input) streams() bool { return i.url != "" || i.inPlace }

// stream leaves an input where it is stored, if it can be read from there.
func (in *Inputs) stream(i *input, target string) error {
	ar, a := in.ar, in.attempt
	if i.access != wire.Access_ACCESS_STREAM || i.pfn == "" || i.cached != nil {
		return nil
	}
	if ar.Cache != nil {
		if i.cached, i.hit = ar.Cache.Get(a.Ctx, i.Item); i.hit {
			return nil
		}
	}
	var why error
	if storage.IsLocal(i.pfn) {
		if a.GetPrivate() {
			return nil
		}
		if why = ar.here(a.Ctx, i); why == nil {
			return in.readInPlace(i, target)
		}
	} else {
		var changed error
		if changed, why = ar.sameStored(a.Ctx, i); changed != nil {
			return changed
		}
		if why == nil {
			i.url, why = ar.URLs.Of(a.Ctx, i.pfn, urlMargin) // whether there is one; see locate
		}
		if why == nil {
			return nil
		}
	}
	i.unstreamed = why
	return nil
}

// noteCopied says of an input that has come why it was not streamed.
func (in *Inputs) noteCopied(i *input) {
	if i.unstreamed != nil {
		in.attempt.Note(report.Clip(fmt.Sprintf("the input %s was copied, and not streamed: %v", i.LFN, i.unstreamed)))
	}
}

// here says why the file of a path cannot be read by it on this node.
func (ar *Area) here(ctx context.Context, i *input) error {
	if ar.Reach == nil {
		return nil
	}
	by, _, err := ar.Reach.wayTo(ctx, i.pfn)
	if err == nil && by != byPath {
		err = errors.New("this node does not see its folder, and only the server of the run has it")
	}
	return err
}

// readInPlace links a file that this node sees.
func (in *Inputs) readInPlace(i *input, target string) error {
	path, err := in.ar.Roots.Path(i.pfn)
	if err != nil {
		return err
	}
	switch i.before, err = os.Stat(path); {
	case isMissing(err) && i.madeByJob():
		return &lostError{in.ar.lost(i, "is not there")}
	case err != nil:
		return err
	case !i.before.Mode().IsRegular():
		return fmt.Errorf("%s is no regular file", path)
	case i.madeByJob() && i.before.Size() != i.Size:
		return &lostError{in.ar.lost(i, i.wrongSize(i.before.Size()).Error())}
	case !in.ar.intact(i):
		return &changedError{path}
	}
	i.inPlace = true
	return os.Symlink(path, target)
}

// sameStored compares a file on a server with what the job is to read, as far as can be told
// without reading it. why says that this node cannot tell.
func (ar *Area) sameStored(ctx context.Context, i *input) (changed, why error) {
	now, err := ar.Storage.Stat(ctx, i.pfn)
	if ar.Reach != nil && (&nearest{ar.Reach}).isFar(i.pfn) {
		return nil, errors.New("this node does not reach its server")
	}
	switch {
	case i.madeByJob() && isMissing(err):
		return &lostError{ar.lost(i, "is not there")}, nil
	case i.madeByJob() && err == nil && now.Size >= 0 && now.Size != i.Size:
		return &lostError{ar.lost(i, i.wrongSize(now.Size).Error())}, nil
	case !i.madeByJob() && storage.TellsState(i.state()) &&
		(isMissing(err) || err == nil && storage.TagOf(i.pfn, now) != i.state()):
		return &changedError{ar.Roots.Shown(i.pfn)}, nil
	}
	return nil, err
}

// locate makes the URLs that the command gets. They are made last: some are good for a
// while only, and other inputs may have taken long to come.
func (in *Inputs) locate() (err error) {
	lasts := in.attempt.GetNeeds().GetTime().AsDuration()
	if lasts == 0 {
		lasts = 1<<63 - 1 - urlMargin // as long as may be
	}
	for _, i := range in.files {
		if i.url == "" {
			continue
		}
		if i.url, err = in.ar.URLs.Of(in.attempt.Ctx, i.pfn, lasts+urlMargin); err != nil {
			return fmt.Errorf("input %s: %w", i.LFN, err)
		}
	}
	return nil
}

// shown is how a command finds the input: by a path relative to its sandbox, or a URL.
func (i *input) shown() string {
	if i.url != "" {
		return i.url
	}
	return i.path
}

// maxVariable bounds a variable of a command in bytes, since the kernel refuses long ones.
const maxVariable = 128<<10 - 256

// Variables are those of the payload's environment that name streamed inputs, as this
// attempt finds them.
func (in *Inputs) Variables() (map[string]string, error) {
	named := in.attempt.Payload.GetInputVariables()
	if len(named) == 0 {
		return nil, nil
	}
	at := make(map[string]string, len(in.files))
	for _, i := range in.files {
		at[i.LFN] = i.shown()
	}
	variables := make(map[string]string, len(named))
	for _, v := range named {
		var words []string
		for _, lfn := range v.GetLfns() {
			if at[lfn] == "" {
				return nil, fmt.Errorf("the variable %s names %s, which is no input", v.GetName(), lfn)
			}
			words = append(words, at[lfn])
		}
		value := strings.Join(words, " ")
		if len(value) > maxVariable {
			return nil, fmt.Errorf("the URLs in the variable %s have %d bytes together, which is too much: read them from the "+
				"file $%s", v.GetName(), len(value), InputsVariable)
		}
		variables[v.GetName()] = value
	}
	return variables, nil
}

// CheckStreamed fails an attempt, whose command has ended, if what it has streamed was not
// the same to the end. Where that cannot be told the result does not count either.
func (in *Inputs) CheckStreamed() {
	a := in.attempt
	for _, i := range in.files {
		if !i.streams() || a.Ctx.Err() != nil {
			continue
		}
		changed, why := in.changedMeanwhile(i)
		outcome, lost := OutcomeOf(changed, wire.Outcome_OUTCOME_INPUT_CHANGED)
		switch {
		case changed != nil:
			a.Result.Outcome, a.Result.Message = outcome, report.Clip("while it was streamed: "+changed.Error())
			if lost.GetPfn() != "" {
				a.Result.Lost = append(a.Result.Lost, lost)
			}
			return
		case why != nil && a.Result.GetOutcome() == wire.Outcome_OUTCOME_SUCCEEDED:
			a.Result.Outcome = wire.Outcome_OUTCOME_STAGE_IN_FAILED
			a.Result.Message = report.Clip(fmt.Sprintf("whether the input %s stayed the same while it was streamed cannot be "+
				"told: %v", i.LFN, why))
			return
		}
	}
}

// changedMeanwhile is sameStored after the command, also for a file that this node sees.
func (in *Inputs) changedMeanwhile(i *input) (changed, why error) {
	if !i.inPlace {
		return in.ar.sameStored(in.attempt.Ctx, i)
	}
	path, err := in.ar.Roots.Path(i.pfn)
	if err != nil {
		return nil, err
	}
	now, err := os.Stat(path)
	switch {
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	case err == nil && os.SameFile(now, i.before) && sameState(now, i.before):
		return in.knownMeanwhile(i, path)
	case i.madeByJob():
		return &lostError{in.ar.lost(i, "was written to, replaced or removed while a job read it")}, nil
	}
	return &changedError{path}, nil
}

// knownMeanwhile reads a file that was streamed, which is as long and as old as before, as its key says
// what it holds.
func (in *Inputs) knownMeanwhile(i *input, path string) (changed, why error) {
	if i.known == (known{}) {
		return nil, nil
	}
	if why = in.ar.compareKnown(in.attempt.Ctx, i, path); isSpoilt(why) {
		return &changedError{path}, nil
	}
	return nil, why
}

// Redacted leaves out of a text what may be secret in the URLs of the inputs, which a
// program may have printed.
func (in *Inputs) Redacted(text string) string {
	if in == nil {
		return text
	}
	for _, i := range in.files {
		shown, query, secret := strings.Cut(i.url, "?")
		if !secret {
			continue
		}
		text = withoutQueries(text, shown+"?")
		for pair := range strings.SplitSeq(query, "&") { // what a program has printed of it, cut or not
			_, value, _ := strings.Cut(pair, "=")
			plain, _ := url.QueryUnescape(value)
			for _, part := range []string{value, plain} {
				if len(part) >= minSecret {
					text = strings.ReplaceAll(text, part, "...")
				}
			}
		}
	}
	return text
}

const noSuchFile = "No such file or directory"

// MissedFile returns a hint if a failed command looked for the file of a streamed input, or for
// the first word of a name with spaces, or "".
func (in *Inputs) MissedFile(said string) string {
	for _, i := range in.files {
		if word, _, ok := strings.Cut(i.LFN, " "); ok && word != "" &&
			(strings.Contains(said, " "+word+": "+noSuchFile) || strings.Contains(said, "'"+word+"': "+noSuchFile)) {
			return fmt.Sprintf(`the name of the input %q has spaces, at which the shell parts it: write "$in" for one file, `+
				"and read the names of several from $FAIRWAY_INPUTS_FILE", i.LFN)
		}
		_, after, ok := strings.Cut(said, i.path)
		if i.url != "" && ok && strings.HasPrefix(strings.TrimLeft(after, `'"`), ": "+noSuchFile) {
			return "the input " + i.LFN + " is streamed, so it may have no file in the sandbox: use the variable that names it"
		}
	}
	return ""
}

// minSecret is how long a part of a query is, in bytes, that is taken for a secret
// wherever it stands.
const minSecret = 16

// withoutQueries cuts what follows a prefix in a text, up to white space or a quote.
func withoutQueries(text, prefix string) string {
	var b strings.Builder
	for {
		before, after, ok := strings.Cut(text, prefix)
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		b.WriteString(strings.TrimSuffix(prefix, "?"))
		text = strings.TrimLeftFunc(after, func(r rune) bool { return !strings.ContainsRune(" \t\r\n\"'`<>", r) })
	}
}
