package dispatch

import "fmt"

// Writers of names that are known before stand in the FIFO of the file. Names
// that are chosen by content have no such order: which of two versions a reader
// got would depend on which job ended first. So such a file has one writer.

// TwoWriters says that two jobs write a file in no order, and what to write
// instead. It says the same whichever is given first.
func TwoWriters(lfn, one, other string) string {
	return fmt.Sprintf("%s is an output of both %s and %s: let the names differ, as by a folder for each placeholder (writes: {a}/{b} in place of {a}.{b})",
		lfn, min(one, other), max(one, other))
}

// chosenBefore is another job that chose to write the file and was committed. What
// j was committed with itself it may write again.
func (f *file) chosenBefore(j *job) *job {
	if own := f.version(Version(j.id)); own != nil && own.writer == j {
		return nil
	}
	for _, v := range f.versions {
		if v.writer != nil && v.committed() && v.writer.outputFor(f.lfn).Pattern {
			return v.writer
		}
	}
	return nil
}

// choseOthers says whether a result holds a file that another job of this run
// chose to write. The job runs then, and is told so if that is still the case.
func (fs *files) choseOthers(j *job, outputs []output) bool {
	for i := range outputs {
		f := fs.find(outputs[i].LFN)
		if outputs[i].Pattern != "" && f != nil && f.chosenBefore(j) != nil {
			return true
		}
	}
	return false
}
