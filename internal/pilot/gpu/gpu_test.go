package gpu

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
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
	first, err := Take(four, 3, folder)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Take(four, 2, folder); !errors.Is(err, ErrTaken) {
		t.Errorf("two of one: %v", err)
	}
	second, err := Take(four, 1, folder)
	if err != nil || slices.Contains(first.UUIDs, second.UUIDs[0]) {
		t.Errorf("%v beside %v, %v", second, first, err)
	}
	given := slices.Clone(first.UUIDs)
	first.GiveBack()
	again, err := Take(four, 3, folder)
	if err != nil || !slices.Equal(again.UUIDs, given) {
		t.Errorf("%v, want %v, %v", again, given, err)
	}
}
