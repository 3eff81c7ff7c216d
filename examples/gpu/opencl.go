//go:build linux && (amd64 || arm64)

package main

import (
	_ "embed"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"

	"fairway/examples/llk23/sweep"
)

// What is called of OpenCL 1.2, as CL/cl.h declares it. Objects are pointers; a status of 0 is success.
type opencl struct {
	getPlatformIDs          func(entries uint32, platforms *uintptr, n *uint32) int32
	getDeviceIDs            func(platform uintptr, kind uint64, entries uint32, devices *uintptr, n *uint32) int32
	getDeviceInfo           func(device uintptr, name uint32, size uintptr, value unsafe.Pointer, n *uintptr) int32
	createContext           func(properties *uintptr, n uint32, devices *uintptr, notify, data uintptr, status *int32) uintptr
	createCommandQueue      func(context, device uintptr, properties uint64, status *int32) uintptr
	createProgramWithSource func(context uintptr, n uint32, texts **byte, lengths *uintptr, status *int32) uintptr
	buildProgram            func(program uintptr, n uint32, devices *uintptr, options *byte, notify, data uintptr) int32
	getProgramBuildInfo     func(program, device uintptr, name uint32, size uintptr, value unsafe.Pointer, n *uintptr) int32
	createKernel            func(program uintptr, name *byte, status *int32) uintptr
	setKernelArg            func(kernel uintptr, index uint32, size uintptr, value unsafe.Pointer) int32
	createBuffer            func(context uintptr, flags uint64, size uintptr, host unsafe.Pointer, status *int32) uintptr
	enqueueWriteBuffer      func(queue, buffer uintptr, blocking uint32, offset, size uintptr, from unsafe.Pointer, n uint32, wait, event uintptr) int32
	enqueueReadBuffer       func(queue, buffer uintptr, blocking uint32, offset, size uintptr, to unsafe.Pointer, n uint32, wait, event uintptr) int32
	enqueueNDRangeKernel    func(queue, kernel uintptr, dimensions uint32, offset, global, local *uintptr, n uint32, wait, event uintptr) int32
	finish                  func(queue uintptr) int32
	releaseMemObject        func(buffer uintptr) int32
	releaseContext          func(context uintptr) int32
}

// Constants of CL/cl.h.
const (
	anyDevice  = 0xFFFFFFFF // CL_DEVICE_TYPE_ALL
	deviceName = 0x102B     // CL_DEVICE_NAME
	buildLog   = 0x1183     // CL_PROGRAM_BUILD_LOG
	readWrite  = 1          // CL_MEM_READ_WRITE
	blocking   = 1          // CL_TRUE
)

// library is what Debian's ocl-icd-libopencl1 has, which finds the drivers.
const library = "libOpenCL.so.1"

func openLibrary() (*opencl, error) {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("OpenCL is not there (Debian: apt-get install ocl-icd-libopencl1 pocl-opencl-icd): %w", err)
	}
	c := &opencl{}
	for name, function := range map[string]any{
		"clGetPlatformIDs": &c.getPlatformIDs, "clGetDeviceIDs": &c.getDeviceIDs, "clGetDeviceInfo": &c.getDeviceInfo,
		"clCreateContext": &c.createContext, "clCreateCommandQueue": &c.createCommandQueue,
		"clCreateProgramWithSource": &c.createProgramWithSource, "clBuildProgram": &c.buildProgram,
		"clGetProgramBuildInfo": &c.getProgramBuildInfo, "clCreateKernel": &c.createKernel, "clSetKernelArg": &c.setKernelArg,
		"clCreateBuffer": &c.createBuffer, "clEnqueueWriteBuffer": &c.enqueueWriteBuffer,
		"clEnqueueReadBuffer": &c.enqueueReadBuffer, "clEnqueueNDRangeKernel": &c.enqueueNDRangeKernel, "clFinish": &c.finish,
		"clReleaseMemObject": &c.releaseMemObject, "clReleaseContext": &c.releaseContext,
	} {
		purego.RegisterLibFunc(function, handle, name)
	}
	return c, nil
}

//go:embed kernel.cl
var source string

// card is a device of OpenCL, with a queue for each of the three tasks.
type card struct {
	cl                      *opencl
	name                    string
	device, context, kernel uintptr
	queues                  [roles]uintptr
	buffers, factors        []uintptr
}

func status(what string, code int32) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s: OpenCL says %d (CL/cl.h)", what, code)
}

// openCard opens the first device whose name holds a text, with room for some blocks.
func openCard(named string, buffers, blocks, size int) (device, error) {
	cl, err := openLibrary()
	if err != nil {
		return nil, err
	}
	c := &card{cl: cl, factors: make([]uintptr, blocks)}
	if err := c.find(named); err != nil {
		return nil, err
	}
	var code int32
	c.context = cl.createContext(nil, 1, &c.device, 0, 0, &code)
	if err := status("a context on "+c.name, code); err != nil {
		return nil, err
	}
	for i := range c.queues {
		if c.queues[i] = cl.createCommandQueue(c.context, c.device, 0, &code); code != 0 {
			return nil, status("a queue", code)
		}
	}
	for range buffers {
		buffer, err := c.memory(8 * size)
		if err != nil {
			return nil, err
		}
		c.buffers = append(c.buffers, buffer)
	}
	return c, c.build()
}

// maxDevices bounds how many devices of a platform are looked at.
const maxDevices = 16

func (c *card) find(named string) error {
	var platforms, devices [maxDevices]uintptr
	var n, m uint32
	if err := status("the drivers of OpenCL", c.cl.getPlatformIDs(maxDevices, &platforms[0], &n)); err != nil {
		return fmt.Errorf("%w; Debian: apt-get install pocl-opencl-icd", err)
	}
	var names []string
	for _, platform := range platforms[:min(n, maxDevices)] {
		if c.cl.getDeviceIDs(platform, anyDevice, maxDevices, &devices[0], &m) != 0 {
			continue // it has none
		}
		for _, device := range devices[:min(m, maxDevices)] {
			var text [256]byte
			var length uintptr
			if c.cl.getDeviceInfo(device, deviceName, uintptr(len(text)), unsafe.Pointer(&text[0]), &length) != 0 {
				continue
			}
			name := strings.TrimRight(string(text[:min(length, uintptr(len(text)))]), "\x00")
			names = append(names, name)
			if strings.Contains(name, named) {
				c.device, c.name = device, name
				return nil
			}
		}
	}
	return fmt.Errorf("OpenCL has no device whose name holds %q; it has %q", named, names)
}

func (c *card) memory(bytes int) (uintptr, error) {
	var code int32
	buffer := c.cl.createBuffer(c.context, readWrite, uintptr(bytes), nil, &code)
	return buffer, status(fmt.Sprintf("memory of %d bytes on %s", bytes, c.name), code)
}

func (c *card) build() error {
	text, options, name := cString(source), cString(fmt.Sprint("-DLANES=", lanes)), cString("sweep")
	length := uintptr(len(source))
	var code int32
	program := c.cl.createProgramWithSource(c.context, 1, &text, &length, &code)
	if err := status("the program", code); err != nil {
		return err
	}
	if err := status("compiling kernel.cl", c.cl.buildProgram(program, 1, &c.device, options, 0, 0)); err != nil {
		said := make([]byte, 4096)
		_ = c.cl.getProgramBuildInfo(program, c.device, buildLog, uintptr(len(said)), unsafe.Pointer(&said[0]), nil)
		return errors.Join(err, errors.New(strings.TrimRight(string(said), "\x00")))
	}
	c.kernel = c.cl.createKernel(program, name, &code)
	runtime.KeepAlive(text)
	return status("the kernel", code)
}

func cString(text string) *byte { return &append([]byte(text), 0)[0] }

func (c *card) Name() string { return c.name }

func (c *card) Keep(block int, factors []sweep.Coefficients) error {
	bytes := uintptr(len(factors)) * unsafe.Sizeof(factors[0])
	var err error
	if c.factors[block], err = c.memory(int(bytes)); err != nil {
		return err
	}
	return status("coefficients", c.cl.enqueueWriteBuffer(c.queues[load], c.factors[block], blocking, 0, bytes,
		unsafe.Pointer(&factors[0]), 0, 0, 0))
}

func (c *card) Load(buffer int, field []float64) error {
	return status("loading a block", c.cl.enqueueWriteBuffer(c.queues[load], c.buffers[buffer], blocking, 0,
		uintptr(8*len(field)), unsafe.Pointer(&field[0]), 0, 0, 0))
}

func (c *card) Store(buffer int, field []float64) error {
	return status("storing a block", c.cl.enqueueReadBuffer(c.queues[store], c.buffers[buffer], blocking, 0,
		uintptr(8*len(field)), unsafe.Pointer(&field[0]), 0, 0, 0))
}

func (c *card) Sweep(buffer, block, rows, columns int) error {
	r, n, width := int32(rows), int32(columns), uintptr(lanes)
	for i, argument := range []struct {
		size  uintptr
		value unsafe.Pointer
	}{
		{unsafe.Sizeof(uintptr(0)), unsafe.Pointer(&c.buffers[buffer])},
		{unsafe.Sizeof(uintptr(0)), unsafe.Pointer(&c.factors[block])},
		{4, unsafe.Pointer(&r)}, {4, unsafe.Pointer(&n)},
	} {
		code := c.cl.setKernelArg(c.kernel, uint32(i), argument.size, argument.value)
		if err := status("an argument of the kernel", code); err != nil {
			return err
		}
	}
	code := c.cl.enqueueNDRangeKernel(c.queues[compute], c.kernel, 1, nil, &width, &width, 0, 0, 0)
	if err := status("the kernel", code); err != nil {
		return err
	}
	return status("the kernel", c.cl.finish(c.queues[compute]))
}

func (c *card) Close() {
	for _, buffer := range append(c.buffers, c.factors...) {
		if buffer != 0 {
			_ = c.cl.releaseMemObject(buffer)
		}
	}
	_ = c.cl.releaseContext(c.context)
}
