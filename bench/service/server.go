package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/pprof"
	"strings"

	"fairway/bench/measure/lightpilot"
	"fairway/internal/batch"
	"fairway/internal/server"
	"fairway/internal/server/api"
	"fairway/internal/server/folder"
	"fairway/internal/server/launch"
	"fairway/internal/server/people"
	"fairway/internal/taskqueue"
	"fairway/internal/web"
)

// serverConfig says what a server serves.
type serverConfig struct {
	folder string
	store  string // the address of a PostgreSQL; empty: in the folder
	pilots int
}

const siteName = "service"

// pilotHas is what each pilot has.
var pilotHas = taskqueue.Resources{MilliCPUs: 1000, Memory: 1 << 30, Disk: 1 << 30}

// serve is the server's process. It prints the link to its page, and "submitted" when all launches
// are. It does what lines of its standard input say, and ends with that.
func serve(ctx context.Context, c serverConfig) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	pages, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	access := web.NewAccess(pages.Addr().String(), false)
	config := server.Config{
		RunConfig:     server.RunConfig{Folder: c.folder},
		ServiceConfig: server.ServiceConfig{Lasting: true, Store: c.store},
		Listen:        "127.0.0.1:0", Log: log,
		Web: &server.Web{Listener: pages, Handler: func(service *api.Service, door *people.Door) http.Handler {
			return web.New(web.Config{Service: service, Access: access, Door: door, Name: "bench/service", Log: log})
		}},
	}
	if c.pilots > 0 {
		config.Sites = []server.Site{{
			Site: taskqueue.Site{Name: siteName, MinPilots: c.pilots, MaxPilots: c.pilots, Pilot: pilotHas},
			System: func(folders folder.Layout, way func(string, any) (launch.Way, error)) (batch.System, error) {
				return &lightpilot.Roll{
					Folder: folders.Pilots, Way: way, Missing: c.pilots, All: func() { fmt.Println("submitted") },
				}, nil
			},
		}}
	}
	s, err := server.Open(ctx, config)
	if err != nil {
		return err
	}
	fmt.Println(access.Link(pages.Addr().String()))
	go obey()
	_, err = s.Run(ctx)
	return err
}

// obey does what it is told: "cpu FILE" begins a profile of processors, which the next "cpu" ends,
// "memory FILE" writes one of the memory, and "heap" tells how many bytes of it are in use. Each
// is answered by a line. It ends the process when nobody tells it anything any more.
func obey() {
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		order, file, _ := strings.Cut(lines.Text(), " ")
		answer := "done"
		var err error
		switch {
		case order == "cpu" && file == "":
			pprof.StopCPUProfile()
		case order == "cpu":
			err = profile(file, pprof.StartCPUProfile)
		case order == "memory":
			err = profile(file, pprof.WriteHeapProfile)
		case order == "heap":
			answer = fmt.Sprint(heap())
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "service:", err)
		}
		fmt.Println(answer)
	}
	os.Exit(0)
}

func profile(file string, write func(io.Writer) error) error {
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return write(f)
}

// heap is the memory in use when the garbage is collected.
func heap() uint64 {
	runtime.GC()
	runtime.GC() // what finalizers have let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
