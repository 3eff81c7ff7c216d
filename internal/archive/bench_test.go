package archive

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkSmallFiles packs and unpacks a folder of many small files.
func BenchmarkSmallFiles(b *testing.B) {
	folder := b.TempDir()
	const files = 10_000
	for i := range files {
		write(b, fmt.Sprintf("%s/%04d", folder, i), "small", 0o644)
	}
	b.Run("pack", func(b *testing.B) {
		for range b.N {
			_, err := packed(b, folder)
			must(b, err)
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/files, "µs/file")
	})
	b.Run("unpack", func(b *testing.B) {
		f, err := packed(b, folder)
		must(b, err)
		info, err := f.Stat()
		must(b, err)
		a, err := Open(f, info.Size())
		must(b, err)
		b.ResetTimer()
		for i := range b.N {
			into := filepath.Join(b.TempDir(), fmt.Sprint(i))
			must(b, os.Mkdir(into, 0o755))
			must(b, a.Unpack(b.Context(), open(b, into), time.Now()))
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/files, "µs/file")
	})
}
