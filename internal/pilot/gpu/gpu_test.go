package gpu

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"pgregory.net/rapid"
)

// recorded answers as nvidia-smi did.
func recorded(folder string) func(...string) (string, error) {
	return func(arguments ...string) (string, error) {
		name := "memory"
		if arguments[0] == "-L" {
			name = "list"
		}
		text, err := os.ReadFile(filepath.Join("testdata", folder, name))
		return string(text), err
	}
}

func uuids(devices []Device) (short []string) {
	for _, d := range devices {
		short = append(short, d.UUID[:8])
	}
	return short
}

func TestRecordedAnswers(t *testing.T) {
	four, err := nvidia(recorded("four"))
	if err != nil || !slices.Equal(uuids(four), []string{"GPU-5d5b", "GPU-a0d8", "GPU-c8a1", "GPU-f1c8"}) {
		t.Fatalf("%v, %v", four, err)
	}
	if four[0].Memory != 40536<<20 || four[3].Memory != 15360<<20 {
		t.Errorf("memory of %v", four)
	}
	mig, err := nvidia(recorded("mig"))
	if err != nil || !slices.Equal(uuids(mig), []string{"MIG-c738", "MIG-8c52", "GPU-a0d8"}) {
		t.Fatalf("%v, %v", mig, err)
	}
	if mig[0].Memory != 20e9 || mig[1].Memory != 5e9 {
		t.Errorf("memory of %v", mig)
	}
	if _, err := nvidia(func(...string) (string, error) { return "", errors.New("no driver") }); err == nil {
		t.Error("a failure was no error")
	}
}

func TestWhatTheEnvironmentNames(t *testing.T) {
	four, _ := nvidia(recorded("four"))
	for list, want := range map[string]string{
		"2,0": "GPU-c8a1 GPU-5d5b", "GPU-f1c8": "GPU-f1c8", "1,9,0": "GPU-a0d8", "": "", "NoDevFiles": "", "-1": "",
	} {
		named := visible(four, func(string) (string, bool) { return list, true }, "X")
		if got := strings.Join(uuids(named), " "); got != want {
			t.Errorf("%q: %s, want %s", list, got, want)
		}
	}
	if all := visible(four, func(string) (string, bool) { return "", false }, "X"); len(all) != 4 {
		t.Errorf("without a list: %v", all)
	}
}

func TestAMD(t *testing.T) {
	devices, err := amd(fstest.MapFS{
		"0/properties":             {Data: []byte("cpu_cores_count 64\nsimd_count 0\n")},
		"1/properties":             {Data: []byte("simd_count 440\nunique_id 12345678901234567890\n")},
		"1/mem_banks/0/properties": {Data: []byte("heap_type 1\nsize_in_bytes 68702699520\n")},
		"10/properties":            {Data: []byte("simd_count 440\nunique_id 2\n")},
		"2/properties":             {Data: []byte("simd_count 440\nunique_id 1\n")},
	})
	want := []Device{
		{UUID: "GPU-ab54a98ceb1f0ad2", Memory: 68702699520}, {UUID: "GPU-0000000000000001"}, {UUID: "GPU-0000000000000002"},
	}
	if err != nil || !slices.Equal(devices, want) {
		t.Errorf("%v, %v", devices, err)
	}
	if none, err := amd(fstest.MapFS{}); err != nil || len(none) > 0 {
		t.Errorf("%v, %v", none, err)
	}
}

// A device is nobody else's until it is given back.
func TestNeverTwice(t *testing.T) {
	four, _ := nvidia(recorded("four"))
	folder := filepath.Join(t.TempDir(), "locks")
	first, err := Take(four, Need{Whole: 3}, folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(four, Need{Whole: 2}, folder); !errors.Is(err, ErrTaken) {
		t.Errorf("two of one: %v", err)
	}
	second, err := Take(four, Need{Whole: 1}, folder)
	if err != nil || slices.Contains(first.UUIDs, second.UUIDs[0]) {
		t.Errorf("%v beside %v, %v", second, first, err)
	}
	given := slices.Clone(first.UUIDs)
	first.GiveBack()
	again, err := Take(four, Need{Whole: 3}, folder)
	if err != nil || !slices.Equal(again.UUIDs, given) {
		t.Errorf("%v, want %v, %v", again, given, err)
	}
}

func share(n int) Need { return Need{Share: n} }

// Shares fill a device before another one is begun, a whole device has no shares beside it, and
// what is left of several devices together is no device.
func TestShares(t *testing.T) {
	devices, _ := nvidia(recorded("four"))
	folder := filepath.Join(t.TempDir(), "locks")
	take := func(need Need) *Given {
		t.Helper()
		given, err := Take(devices[:2], need, folder)
		if err != nil {
			t.Fatal(err)
		}
		return given
	}
	refused := func(need Need) {
		t.Helper()
		if given, err := Take(devices[:2], need, folder); !errors.Is(err, ErrTaken) {
			t.Fatalf("%+v: %v, %v", need, given, err)
		}
	}
	half, other := take(share(500)), take(share(500))
	if !slices.Equal(half.UUIDs, other.UUIDs) {
		t.Errorf("two halves are on %v and %v", half.UUIDs, other.UUIDs)
	}
	whole := take(Need{Whole: 1})
	if slices.Equal(whole.UUIDs, half.UUIDs) {
		t.Errorf("%v was given as a whole beside shares", whole.UUIDs)
	}
	refused(share(1))
	whole.GiveBack()
	third := take(share(300)) // on the other device
	half.GiveBack()
	if again := take(share(500)); !slices.Equal(again.UUIDs, other.UUIDs) {
		t.Errorf("a half is on %v, and there was just room for it on %v", again.UUIDs, other.UUIDs)
	}
	refused(share(701))
	refused(Need{Whole: 1})
	small := take(share(700))
	if !slices.Equal(small.UUIDs, third.UUIDs) {
		t.Errorf("seven tenths are on %v, and three on %v", small.UUIDs, third.UUIDs)
	}
}

// Whatever several takers do one after another, no device is given more than once, and a share is
// refused only where no device has so much left.
func TestSharesAgainstModel(t *testing.T) {
	devices, _ := nvidia(recorded("four"))
	rapid.Check(t, func(t *rapid.T) {
		folder, err := os.MkdirTemp("", "shares")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(folder) }()
		type holding struct {
			need  Need
			given *Given
		}
		var held []holding
		defer func() {
			for _, h := range held {
				h.given.GiveBack()
			}
		}()
		used := map[string]int{}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			if len(held) > 0 && rapid.Bool().Draw(t, "give back") {
				at := rapid.IntRange(0, len(held)-1).Draw(t, "which")
				for _, id := range held[at].given.UUIDs {
					used[id] -= cmp.Or(held[at].need.Share, parts)
				}
				held[at].given.GiveBack()
				held = slices.Delete(held, at, at+1)
				continue
			}
			need := Need{Whole: rapid.IntRange(1, 4).Draw(t, "whole")}
			if rapid.IntRange(0, 3).Draw(t, "kind") > 0 {
				need = share(rapid.IntRange(1, 999).Draw(t, "share"))
			}
			room := 0
			for _, d := range devices {
				if used[d.UUID]+cmp.Or(need.Share, parts) <= parts {
					room++
				}
			}
			given, err := Take(devices, need, folder)
			if (room >= max(1, need.Whole)) != (err == nil) {
				t.Fatalf("%+v where %d devices have room: %v, %v", need, room, given, err)
			}
			if err != nil {
				continue
			}
			if len(given.UUIDs) != max(1, need.Whole) {
				t.Fatalf("%+v: %v", need, given.UUIDs)
			}
			for _, id := range given.UUIDs {
				if used[id] += cmp.Or(need.Share, parts); used[id] > parts {
					t.Fatalf("%d thousandths of %s are given", used[id], id)
				}
			}
			held = append(held, holding{need, given})
		}
	})
}
