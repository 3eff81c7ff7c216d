package s3

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"fairway/internal/storage"
)

// A server whose list has no end is left after the first page that brings nothing new, or at
// a bound, with an error that names bucket and bound. It is not asked again.
func TestListingsHaveAnEnd(t *testing.T) {
	page := func(token, keys string) string {
		const next = "<IsTruncated>true</IsTruncated><NextContinuationToken>%s</NextContinuationToken>"
		return fmt.Sprintf("<ListBucketResult>"+next+"%s</ListBucketResult>", token, keys)
	}
	key := func(name any) string {
		return fmt.Sprintf("<Contents><Key>d/%v</Key><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>", name)
	}
	nested := strings.Repeat("<Contents>", 100_000)
	for name, c := range map[string]struct {
		answer func(n int64) string
		says   string
		most   int64 // requests
	}{
		"a token repeats":             {func(n int64) string { return page("t", key(n)) }, "repeats", 2},
		"tokens repeat in turns":      {func(n int64) string { return page(fmt.Sprint(n%3), key(n)) }, "repeats", 4},
		"a page repeats":              {func(n int64) string { return page(fmt.Sprint(n), key(1)) }, "repeats", 2},
		"pages have no name":          {func(n int64) string { return page(fmt.Sprint(n), "") }, "no name", 2},
		"pages without an end":        {func(n int64) string { return page(fmt.Sprint(n), strings.Repeat(key(n), 100_000)) }, "elements", 1},
		"nested elements":             {func(int64) string { return "<ListBucketResult>" + nested }, "MaxDepth", 1},
		"an endless key":              {func(int64) string { return "<ListBucketResult><Contents><Key>" + strings.Repeat("a", 1<<20) }, "MaxText", 1},
		"an error with nested ones":   {func(int64) string { return "" }, "more than", 4},
		"the first page is cut short": {func(int64) string { return "<ListBucketResult><Contents>" }, "", 4},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				text := c.answer(asked.Add(1))
				if text == "" {
					w.WriteHeader(http.StatusInternalServerError)
					for range 1000 {
						if _, err := io.WriteString(w, nested); err != nil {
							return
						}
					}
				}
				_, _ = io.WriteString(w, text)
			}))
			defer server.Close()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := element(strings.TrimPrefix(server.URL, "http://")).List(t.Context(), "s3://bucket/d")
			runtime.ReadMemStats(&after)
			var listing *storage.ListingError
			if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "s3://bucket/d") ||
				c.most < 4 && !errors.As(err, &listing) {
				t.Errorf("%.300v", err)
			}
			if n := asked.Load(); n > c.most {
				t.Error("it was asked", n, "times")
			}
			if after.HeapSys > before.HeapSys+256<<20 {
				t.Error("the heap grew by", (after.HeapSys-before.HeapSys)>>20, "MiB")
			}
		})
	}
}

// All pages together are bounded too.
func TestListingsAreBoundedInAll(t *testing.T) {
	const one = "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>"
	for want, l := range map[string]*listing{
		"MaxEntries": {names: storage.MaxEntries},
		"MaxListing": {bytes: storage.MaxListing},
		"":           {},
	} {
		l.seen = map[string]bool{}
		page, err := l.take(strings.NewReader(one))
		if want == "" && string(page) != one || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Error(want, string(page), err)
		}
	}
}
