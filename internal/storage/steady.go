package storage

import (
	"net/http"
	"time"
)

// SteadyWriter is an answer that ends when nobody takes a piece of it within a limit. What it
// answers may be streamed.
type SteadyWriter struct {
	http.ResponseWriter
	Err     error // of the last Write
	control *http.ResponseController
	limit   time.Duration // of each write
}

// NewSteadyWriter gives each write of an answer a limit.
func NewSteadyWriter(w http.ResponseWriter, limit time.Duration) *SteadyWriter {
	return &SteadyWriter{ResponseWriter: w, control: http.NewResponseController(w), limit: limit}
}

// Write is part of io.Writer.
func (s *SteadyWriter) Write(p []byte) (n int, err error) {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.limit))
	n, s.Err = s.ResponseWriter.Write(p)
	return n, s.Err
}

// Flush is part of http.Flusher, which streams need.
func (s *SteadyWriter) Flush() { _ = s.control.Flush() }

// Unwrap is for http.ResponseController.
func (s *SteadyWriter) Unwrap() http.ResponseWriter { return s.ResponseWriter }
