package quantity

import (
	"testing"
	"time"
)

// A unit that workflows take and experiments refuse, or the other way round, is
// learnt twice.
func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"4096": 4096, "0B": 0, "700KB": 700_000, "700kB": 700_000, "2.5GB": 2_500_000_000, "1GiB": 1 << 30, "8k": 8000,
		"1 MB": 1_000_000, "5B": 5, "2.5KiB": 2560,
	} {
		if got, err := Size(text); got != want || err != nil {
			t.Errorf("%q: %d %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "MB", "-1MB", "1e3", "5 apples", "10 EB", "9999999PB", "1.MB", "1mb", "1XB", "1GBi", "nan", "inf", "1 2",
	} {
		if got, err := Size(text); err == nil {
			t.Errorf("%q: %d", text, got)
		}
	}
}

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"90s":    90 * time.Second,
		"1h30m":  90 * time.Minute,
		"2d":     48 * time.Hour,
		"1d12h":  36 * time.Hour,
		"1d0.5s": 24*time.Hour + 500*time.Millisecond,
		"0s":     0,
		"250ms":  250 * time.Millisecond,
	} {
		if got, err := Duration(text); got != want || err != nil {
			t.Errorf("%q: %v %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "90", "-1s", "+1s", "1.5d", "99999999d", "d", "1 m", "soon", "1d2", "1d-2h", "1h1d", "1d1d",
		"65536d2562047h", "1d soon",
	} {
		if got, err := Duration(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestWhatPeopleRead(t *testing.T) {
	for got, want := range map[string]string{
		Bytes(0): "0 B", Bytes(999): "999 B", Bytes(1000): "1.0 kB", Bytes(500_000_000): "500 MB", Bytes(1 << 40): "1.1 TB",
		Seconds(0): "0 s", Seconds(0.012): "12 ms", Seconds(42): "42.0 s", Seconds(100): "1 min 40 s",
		Seconds(7260): "2 h 01 min",
		Clock(62):     "1:02", Clock(3723): "1:02:03", Count(1, "job"): "1 job", Count(0, "job"): "0 jobs",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestClockTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"1-02:03:04": 26*time.Hour + 3*time.Minute + 4*time.Second, "59:59": 59*time.Minute + 59*time.Second,
		"2:00:00": 2 * time.Hour,
		"0:07":    7 * time.Second, "UNLIMITED": 0, "INVALID": 0, "": 0, "NOT_SET": 0, "1-": 0, "12": 0,
		"1:2:3:4": 0, "-1:00": 0,
	} {
		if got := ClockTime(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

func TestDays(t *testing.T) {
	for seconds, want := range map[float64]string{
		86400: "1 day", 7 * 86400: "7 days", 36 * 3600: "36 h 00 min", 5: "5.0 s",
	} {
		if got := Days(seconds); got != want {
			t.Errorf("%v s is %s", seconds, got)
		}
	}
}
