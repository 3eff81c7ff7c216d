package orwl

import (
	"fmt"
	"reflect"
	"sync"
	"unsafe"
)

// Mappable is a lock whose data can be mapped: a *Handle or a *Pair.
type Mappable interface {
	ReadMap() ([]byte, error)
	WriteMap() ([]byte, error)
}

// ReadAs returns the data for reading as a slice of T, a type without
// pointers; bytes beyond the last whole T are left out. See Handle.ReadMap.
func ReadAs[T any](m Mappable) ([]T, error) {
	if err := plain[T](); err != nil {
		return nil, err
	}
	b, err := m.ReadMap()
	return slice[T](b), err
}

// WriteAs returns the data for writing as a slice of T, a type without
// pointers; bytes beyond the last whole T are left out. See Handle.WriteMap.
func WriteAs[T any](m Mappable) ([]T, error) {
	if err := plain[T](); err != nil {
		return nil, err
	}
	b, err := m.WriteMap()
	return slice[T](b), err
}

// BytesAs returns b as a slice of T, a type without pointers; it panics when T
// has any. It is for the function given to Initialize.
func BytesAs[T any](b []byte) []T {
	if err := plain[T](); err != nil {
		panic(err)
	}
	return slice[T](b)
}

// slice relies on memory being aligned for every type.
func slice[T any](b []byte) []T {
	var t T
	size := int(unsafe.Sizeof(t))
	if size == 0 || len(b) < size {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/size)
}

var plainTypes sync.Map // reflect.Type to error or nil

func plain[T any]() error {
	t := reflect.TypeFor[T]()
	v, ok := plainTypes.Load(t)
	if !ok {
		var err error
		if hasPointers(t) {
			err = fmt.Errorf("mapping data as %v: the type has pointers", t)
		}
		v, _ = plainTypes.LoadOrStore(t, &err)
	}
	return *v.(*error)
}

func hasPointers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Array:
		return hasPointers(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if hasPointers(t.Field(i).Type) {
				return true
			}
		}
		return false
	}
	return t.Kind() > reflect.Complex128 || t.Kind() == reflect.Invalid
}

// pinned are the handles that have memory of a file of a Location mapped. The collector does
// not know of such memory: without this it could go while a task uses it, when the task does
// not need its handle any more. Those of a mirror its peer pins, while the connection lasts.
var pinned struct {
	sync.Mutex
	handles map[*Handle]struct{}
}

func pin(h *Handle) {
	pinned.Lock()
	defer pinned.Unlock()
	if pinned.handles == nil {
		pinned.handles = make(map[*Handle]struct{})
	}
	pinned.handles[h] = struct{}{}
}

func unpin(h *Handle) {
	pinned.Lock()
	defer pinned.Unlock()
	delete(pinned.handles, h)
}
