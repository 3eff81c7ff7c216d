package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"fairway/internal/store"
	"fairway/internal/store/storetest"
	"fairway/internal/taskqueue"
)

// PostgreSQL does what every store does. Each folder of the suite stands for a schema.
func TestPostgres(t *testing.T) {
	database := storetest.Postgres(t)
	var mu sync.Mutex
	addresses := map[string]string{}
	storetest.RunElsewhere(t, func(folder string) (store.Store, error) {
		mu.Lock()
		defer mu.Unlock()
		if addresses[folder] == "" {
			addresses[folder] = database.Address()
		}
		return store.OpenPostgres(context.Background(), addresses[folder], store.ReadWrite, "me")
	})
}

func openPostgres(t *testing.T, address string) store.Store {
	t.Helper()
	s, err := store.OpenPostgres(t.Context(), address, store.ReadWrite, "me")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// One server writes at a time. One that was cut off, and replaced, writes nothing any more.
func TestPostgresHasOneWriter(t *testing.T) {
	database := storetest.Postgres(t)
	address := database.Address()
	first := openPostgres(t, address)
	if _, err := store.OpenPostgres(t.Context(), address, store.ReadWrite, "me"); !errors.Is(err, store.ErrLocked) {
		t.Fatal(err)
	}
	if err := first.Apply(t.Context(), []taskqueue.Record{{Table: "job", Key: "1", Body: []byte("first")}}); err != nil {
		t.Fatal(err)
	}
	database.Stop()
	database.Start()
	other := "another state"
	if _, err := store.OpenPostgres(t.Context(), address, store.ReadWrite, other); !errors.Is(err, store.ErrOwned) {
		t.Fatal(err)
	}
	second := openPostgres(t, address) // the lock went with the connection
	err := first.Apply(t.Context(), []taskqueue.Record{{Table: "job", Key: "1", Body: []byte("late")}})
	if !errors.Is(err, store.ErrSuperseded) {
		t.Fatal(err)
	}
	all, err := second.Load(t.Context(), "job")
	if err != nil || len(all) != 1 || string(all[0].Body) != "first" {
		t.Fatal(all, err)
	}
}

// A writer goes on by itself when PostgreSQL was restarted, even by a crash, and nothing that it
// was told is durable is lost.
func TestPostgresIsRestarted(t *testing.T) {
	database := storetest.Postgres(t)
	s := openPostgres(t, database.Address())
	for i := range 5 {
		key := fmt.Sprint(i)
		if err := s.Apply(t.Context(), []taskqueue.Record{{Table: "job", Key: key, Body: []byte(key)}}); err != nil {
			t.Fatal(err)
		}
		database.Stop()
		database.Start()
		all, err := s.Load(t.Context(), "job")
		if err != nil || len(all) != i+1 {
			t.Fatal(all, err)
		}
	}
}

// A line may break so that only one side hears of it: PostgreSQL still has the connection, and the
// lock with it. The writer goes on all the same, as nobody has taken its place.
func TestPostgresDoesNotHearOfACutLine(t *testing.T) {
	database := storetest.Postgres(t)
	line := newLine(t, database.Host())
	s := openPostgres(t, strings.Replace(database.Address(), database.Host(), line.address, 1))
	for _, key := range []string{"1", "2"} {
		if err := s.Apply(t.Context(), []taskqueue.Record{{Table: "job", Key: key, Body: []byte(key)}}); err != nil {
			t.Fatal(err)
		}
		line.cut()
	}
	if all, err := s.Load(t.Context(), "job"); err != nil || len(all) != 2 {
		t.Error(all, err)
	}
}

// line is a way to a server that can be cut for its clients alone.
type line struct {
	address string
	listens net.Listener
	mu      sync.Mutex
	clients []net.Conn
}

func newLine(t *testing.T, to string) *line {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	made := &line{address: l.Addr().String(), listens: l}
	var servers []net.Conn
	var copying sync.WaitGroup
	copying.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", to)
			if err != nil {
				t.Error(err)
				return
			}
			made.mu.Lock()
			made.clients, servers = append(made.clients, client), append(servers, server)
			made.mu.Unlock()
			copying.Go(func() { _, _ = io.Copy(client, server) })
			copying.Go(func() { _, _ = io.Copy(server, client) }) // and does not hang up
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		made.cut()
		for _, server := range servers {
			_ = server.Close()
		}
		copying.Wait()
	})
	return made
}

// close cuts the line for good.
func (l *line) close() {
	_ = l.listens.Close()
	l.cut()
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.clients {
		_ = c.Close()
	}
}

// What cannot be opened says why, without a password.
func TestPostgresAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"postgres://u:secret@127.0.0.1:notaport/d": "write postgres://user@host:5432/database",
		"postgres://u:secret@127.0.0.1:1/d":        "open schema fairway of database d at 127.0.0.1:1",
	} {
		_, err := store.OpenPostgres(t.Context(), address, store.ReadOnly, "")
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", address, err)
		}
	}
	database := storetest.Postgres(t)
	_, err := store.OpenPostgres(t.Context(), database.Address(), store.ReadOnly, "")
	if !errors.Is(err, store.ErrUnready) {
		t.Error(err)
	}
}
