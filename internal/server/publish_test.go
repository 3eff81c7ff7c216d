package server

import (
	"os"
	"path/filepath"
	"testing"

	"fairway/internal/dispatch"
)

func publication(t *testing.T, folder, lfn string, version dispatch.Version, text string) dispatch.Publish {
	t.Helper()
	pfn := filepath.Join(folder, "storage", lfn+".v"+string('0'+rune(version)))
	write(t, pfn, text)
	return dispatch.Publish{File: dispatch.FileRef{LFN: lfn, Version: version}, PFN: pfn}
}

func TestPublishIsRepeatableAndFenced(t *testing.T) {
	folder := t.TempDir()
	results := filepath.Join(folder, "results")
	first := publication(t, folder, "deep/er/a.txt", 1, "one")
	second := publication(t, folder, "deep/er/a.txt", 2, "two")
	p := newPublisher(results)
	if n, err := p.publishAll([]dispatch.Publish{first, second}); n != 2 || err != nil {
		t.Fatalf("%d published, %v", n, err)
	}
	target := filepath.Join(results, "deep/er/a.txt")
	before, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	// the one before comes late, and the last one again from a later process
	if n, err := p.publishAll([]dispatch.Publish{first}); n != 1 || err != nil {
		t.Fatalf("%d published, %v", n, err)
	}
	if n, err := newPublisher(results).publishAll([]dispatch.Publish{second}); n != 1 || err != nil {
		t.Fatalf("%d published, %v", n, err)
	}
	after, err := os.Stat(target)
	if err != nil || !os.SameFile(before, after) || read(t, target) != "two" {
		t.Fatalf("the result changed: %q, %v", read(t, target), err)
	}
}

func TestPublishRefusesToLeaveItsFolder(t *testing.T) {
	folder := t.TempDir()
	out := publication(t, folder, "x", 1, "text")
	out.File.LFN = "../outside"
	if n, err := newPublisher(filepath.Join(folder, "results")).publishAll([]dispatch.Publish{out}); n != 0 || err == nil {
		t.Fatalf("%d published, %v", n, err)
	}
}

func TestCopyWithTimeCountsAsTheSame(t *testing.T) {
	folder := t.TempDir()
	source, target := filepath.Join(folder, "a"), filepath.Join(folder, "b")
	write(t, source, "text")
	if err := copyWithTime(source, target); err != nil {
		t.Fatal(err)
	}
	if same, err := sameFile(source, target); !same || err != nil {
		t.Fatalf("%v, %v", same, err)
	}
}
