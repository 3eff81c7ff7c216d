package bootstrap

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/storage"
)

// Prefix is how the paths begin under which programs are served, followed by the hash.
const Prefix = "/fairway/program/"

// machineKey is what a node says of itself in the query: the answer of `uname -m`.
const machineKey = "machine"

// Handler serves the copies in a folder. It comes behind access.Handler: only launches
// of this server get as far as here. wrong is told, for a person, what keeps a node from
// starting the program.
func Handler(folder string, wrong func(text string)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hash := strings.TrimPrefix(r.URL.Path, Prefix)
		if r.Method != http.MethodGet || !hashForm.MatchString(hash) {
			http.Error(w, "GET "+Prefix+" and the hash of a program is wanted", http.StatusBadRequest)
			return
		}
		if there := r.URL.Query().Get(machineKey); there != machine() {
			text := fmt.Sprintf("a node is of the kind %.100s, and this program is for %s: use nodes of one kind, or run the "+
				"server on a machine of the kind of the nodes", strconv.Quote(there), machine())
			wrong(text)
			http.Error(w, text, http.StatusConflict)
			return
		}
		file, err := openCopy(Path(folder, hash))
		if err != nil {
			http.Error(w, "the server has no such program any more; the launch is of an earlier version", http.StatusNotFound)
			return
		}
		defer file.Close()
		w.Header().Set("Content-Type", "application/octet-stream")
		http.ServeContent(storage.NewSteadyWriter(w, storage.StallTime), r, "", time.Time{}, file)
	})
}

// machine is the kind of this machine, as `uname -m` says it.
func machine() string {
	var name unix.Utsname
	_ = unix.Uname(&name) // never fails
	return unix.ByteSliceToString(name.Machine[:])
}
