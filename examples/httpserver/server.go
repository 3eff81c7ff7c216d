package main

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net"
	"net/http"

	"fairway/lib/sched"
)

// computing runs something that computes and calls checkpoint often.
type computing func(ctx context.Context, f func(checkpoint func())) error

func plain(_ context.Context, f func(checkpoint func())) error {
	f(func() {})
	return nil
}

func withSched(s *sched.Scheduler) computing {
	return func(ctx context.Context, f func(checkpoint func())) error {
		return s.Run(ctx, func(t *sched.Task) error {
			f(t.Checkpoint)
			return nil
		})
	}
}

func serve(with, addr string) error {
	compute := plain
	switch with {
	case "plain":
	case "sched":
		s := sched.New(sched.Config{})
		defer s.Close()
		compute = withSched(s)
	default:
		return fmt.Errorf("-serve %s: want plain or sched", with)
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	http.HandleFunc("/hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	http.HandleFunc("/mandelbrot", drawing(compute))
	return http.Serve(l, nil)
}

func drawing(compute computing) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var picture bytes.Buffer
		err := compute(r.Context(), func(checkpoint func()) {
			_ = png.Encode(&picture, mandelbrot(200, checkpoint)) // a buffer takes everything
		})
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = picture.WriteTo(w)
	}
}

func mandelbrot(size int, checkpoint func()) image.Image {
	m := image.NewGray(image.Rect(0, 0, size, size))
	for y := range size {
		for x := range size {
			c := complex(3*float64(x)/float64(size)-2.2, 3*float64(y)/float64(size)-1.5)
			m.SetGray(x, y, color.Gray{escape(c)})
		}
		checkpoint()
	}
	return m
}

func escape(c complex128) uint8 {
	z := complex128(0)
	for i := range 1000 {
		if real(z)*real(z)+imag(z)*imag(z) > 4 {
			return uint8(8 * i)
		}
		z = z*z + c
	}
	return 0
}
