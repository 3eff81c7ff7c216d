package rocrate

import (
	"crypto/sha256"
	"fmt"
	"net/url"
	"strings"
	"time"
)

// MetadataFile is the name of what Write writes, at the root of a crate.
const MetadataFile = "ro-crate-metadata.json"

// WorkflowFile is the name of the workflow file, at the root of a crate.
const WorkflowFile = "workflow.yaml"

// Run is a run as far as it is recorded.
type Run struct {
	Workflow   string // its name
	About      string // one line; may be empty
	Number     uint32
	Parameters map[string]string   // that were given
	Made       time.Time           // when the crate is made
	Version    string              // of Fairway
	Agent      string              // who had it run: a name or a URL; empty: not known
	License    string              // a URL or a text; empty: none is stated
	FileSize   int64               // of the workflow file, bytes
	FileSum    string              // its SHA-256, hexadecimal
	Steps      []string            // of the workflow, in their order
	Tools      map[string][]string // programs that nodes must have, by step
	Ended      bool
	Succeeded  bool
	Jobs       []Job // that were executed; of one that succeeded the attempt that counts
}

// Job is a job with one of its attempts.
type Job struct {
	Name    string // unique
	Step    string
	Command string
	Error   string // of a job that failed
	Failed  bool
	Earlier bool      // its result was made by an earlier run
	Start   time.Time // of the command; zero: not known
	End     time.Time
	Host    string
	CPU     time.Duration // 0: not known
	Memory  int64         // the most that it used, bytes; 0: not known
	Reads   []File
	Writes  []File

	Image       string // LFN of that in which its command ran; empty: in none
	Environment string // LFN of the folder with the programs of its environment; empty: it has none
}

// File is a version of a file that a job read or wrote.
type File struct {
	LFN       string // ends in a slash: a folder, kept as one archive
	Version   uint32
	Size      int64
	Place     string // the PFN; may be empty
	Made      bool   // a job wrote it
	Published bool
	Adler32   string // eight hexadecimal digits; empty: not known
	BLAKE3    string // hexadecimal; empty: not known
}

// key stands for a version of a file.
type key struct {
	lfn     string
	version uint32
}

func (f *File) key() key { return key{f.LFN, f.Version} }

func (f *File) folder() bool { return strings.HasSuffix(f.LFN, "/") }

// span is from the first start to the last end; zero where nothing is known.
func (r *Run) span() (start, end time.Time) {
	for i := range r.Jobs {
		job := &r.Jobs[i]
		if job.Earlier || job.Start.IsZero() {
			continue
		}
		if start.IsZero() || job.Start.Before(start) {
			start = job.Start
		}
		if job.End.After(end) {
			end = job.End
		}
	}
	return start, end
}

func (r *Run) authority() string {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q %d\n", r.Workflow, r.Number)
	for i := range r.Jobs {
		fmt.Fprintf(sum, "%q %d\n", r.Jobs[i].Name, r.Jobs[i].Start.UnixNano())
	}
	id := sum.Sum(nil)[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // a UUID of version 8
	return fmt.Sprintf("uuid,%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

func fragment(parts ...string) string {
	u := url.URL{Fragment: strings.Join(parts, "/")}
	return u.String()
}

// isURL reports whether a text can be the identifier of something on the web.
func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}
