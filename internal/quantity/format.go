package quantity

import (
	"fmt"
	"math"
	"time"
)

// Bytes gives a number of bytes in decimal units, as disks are sold.
func Bytes(n int64) string {
	const units = "kMGTPE"
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	value, unit := float64(n)/1000, 0
	for value >= 999.5 && unit < len(units)-1 {
		value, unit = value/1000, unit+1
	}
	digits := 1
	if value >= 99.95 {
		digits = 0
	}
	return fmt.Sprintf("%.*f %cB", digits, value, units[unit])
}

// Seconds gives a time span to about three digits.
func Seconds(seconds float64) string {
	switch {
	case seconds < 0.0005:
		return "0 s"
	case seconds < 0.9995:
		return fmt.Sprintf("%.0f ms", seconds*1000)
	case seconds < 99.5:
		return fmt.Sprintf("%.1f s", seconds)
	}
	span := time.Duration(math.Round(seconds)) * time.Second
	hours, minutes, rest := int(span.Hours()), int(span.Minutes())%60, int(span.Seconds())%60
	if hours > 0 {
		return fmt.Sprintf("%d h %02d min", hours, minutes)
	}
	return fmt.Sprintf("%d min %02d s", minutes, rest)
}

// Days gives a time span in days where it is whole days, else as Seconds.
func Days(seconds float64) string {
	if days := seconds / (24 * 3600); days >= 1 && days == math.Trunc(days) {
		return Count(int64(days), "day")
	}
	return Seconds(seconds)
}

// Clock gives a running time as 1:02 or 1:02:03.
func Clock(seconds float64) string {
	s := int(seconds)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// Count gives "1 job", "2 jobs".
func Count(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
