package main

import (
	"bytes"
	"image/png"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestMain lets this binary be the server processes too.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "-serve" {
		main()
		return
	}
	os.Exit(m.Run())
}

// Both servers answer alike, whatever computes the pictures.
func TestServers(t *testing.T) {
	var pictures [][]byte
	for _, with := range []string{"plain", "sched"} {
		url, stop, err := start(with)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		if got := answer(t, url+"/hello"); string(got) != "hello\n" {
			t.Errorf("%s: %q", with, got)
		}
		pictures = append(pictures, answer(t, url+"/mandelbrot"))
	}
	if _, err := png.Decode(bytes.NewReader(pictures[0])); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(pictures[0], pictures[1]) {
		t.Error("the servers draw different pictures")
	}
}

func answer(t *testing.T, url string) []byte {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, r.Status, err)
	}
	return body
}

// The comparison measures both and draws them.
func TestComparison(t *testing.T) {
	plot := filepath.Join(t.TempDir(), "plot.svg")
	if err := run("", "", plot, load{clients: 2, lasts: 500 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(plot)
	if err != nil || !bytes.Contains(text, []byte("<svg")) {
		t.Errorf("the plot is %.100q, %v", text, err)
	}
}

func TestUnknownServer(t *testing.T) {
	if err := run("magic", "127.0.0.1:0", "", load{}); err == nil {
		t.Error("a server with magic was accepted")
	}
}
