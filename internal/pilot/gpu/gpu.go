// Package gpu finds the GPUs of a node, and gives them to attempts.
//
// Guarantees:
//
//   - A device is given to one attempt at a time, or in shares that are no more than it together,
//     among all pilots of a user on the node: whoever has it, or a part of it, holds a lock on a
//     file that is named after it. The lock ends with the process that holds it.
//   - Devices are known by their UUIDs, which no other numbering changes: those of NVIDIA by
//     nvidia-smi, parts of them (MIG) too, those of AMD by what the kernel's driver tells in sysfs.
//   - A list of devices that the environment names is respected: others are not given.
//
// Devices are not chosen by the memory that is free on them: what another job has not taken yet
// looks free.
package gpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"fairway/internal/program"
)

// Device is a GPU, or a part of one.
type Device struct {
	UUID   string
	Memory int64  // bytes
	within string // UUID of the GPU of which it is a part; empty: it is one
}

// Kind says whose devices they are, and by which variable a command sees only its own.
type Kind struct {
	name     string
	Variable string
}

// The kinds of devices that are known.
var (
	NVIDIA = Kind{"NVIDIA", "CUDA_VISIBLE_DEVICES"}
	AMD    = Kind{"AMD", "ROCR_VISIBLE_DEVICES"}
)

// topology is where the driver of AMD tells of its devices.
const topology = "/sys/class/kfd/kfd/topology/nodes"

// Find finds the devices of this node that its environment lets be used. A node without any has none.
func Find(ctx context.Context) (kind Kind, devices []Device, err error) {
	if path, err := exec.LookPath("nvidia-smi"); err == nil {
		devices, err = nvidia(func(arguments ...string) (string, error) {
			began := time.Now()
			out, err := exec.CommandContext(ctx, path, arguments...).Output()
			return string(out), program.Failure(ctx, began, err)
		})
		if err != nil {
			return NVIDIA, nil, fmt.Errorf("the GPUs of this node: %w", err)
		}
		if len(devices) > 0 {
			return NVIDIA, visible(devices, os.LookupEnv, NVIDIA.Variable), nil
		}
	}
	devices, err = amd(os.DirFS(topology))
	if err != nil {
		return AMD, nil, fmt.Errorf("the GPUs of this node: %w", err)
	}
	return AMD, visible(devices, os.LookupEnv, AMD.Variable), nil
}

// What nvidia-smi -L prints: GPUs, and below each the parts that it is divided into.
var (
	gpuLine = regexp.MustCompile(`^GPU \d+: .*\(UUID: (GPU-[^)]+)\)`)
	migLine = regexp.MustCompile(`^\s+MIG \S*?(\d+)gb\S* .*\(UUID: (MIG-[^)]+)\)`)
)

func nvidia(ask func(arguments ...string) (string, error)) (devices []Device, err error) {
	list, err := ask("-L")
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi -L: %w", err)
	}
	table, err := ask("--query-gpu=uuid,memory.total", "--format=csv,noheader,nounits")
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi --query-gpu: %w", err)
	}
	memory := map[string]int64{}
	for line := range strings.Lines(table) {
		uuid, amount, _ := strings.Cut(line, ",")
		if mebibytes, err := strconv.ParseInt(strings.TrimSpace(amount), 10, 64); err == nil {
			memory[strings.TrimSpace(uuid)] = mebibytes << 20
		}
	}
	for line := range strings.Lines(list) {
		if m := gpuLine.FindStringSubmatch(line); m != nil {
			devices = append(devices, Device{UUID: m[1], Memory: memory[m[1]]})
		} else if m := migLine.FindStringSubmatch(line); m != nil && len(devices) > 0 {
			last := &devices[len(devices)-1]
			part := Device{UUID: m[2], within: last.UUID}
			if last.within != "" {
				part.within = last.within
			}
			gigabytes, _ := strconv.ParseInt(m[1], 10, 64)
			if part.Memory = gigabytes * 1e9; last.within == "" {
				*last = part // it is divided, and not given as a whole
			} else {
				devices = append(devices, part)
			}
		}
	}
	return devices, nil
}

// amd reads the nodes of the driver that have processors of a GPU.
func amd(nodes fs.FS) (devices []Device, err error) {
	files, err := fs.Glob(nodes, "*/properties")
	if err != nil {
		return nil, err
	}
	slices.SortFunc(files, func(a, b string) int { return len(a) - len(b) }) // 2 before 10
	for _, file := range files {
		properties, err := readProperties(nodes, file)
		if err != nil {
			return nil, err
		}
		if properties["simd_count"] == 0 || properties["unique_id"] == 0 {
			continue // a processor, or a device that has no name
		}
		d := Device{UUID: fmt.Sprintf("GPU-%016x", properties["unique_id"])}
		banks, err := fs.Glob(nodes, filepath.Join(filepath.Dir(file), "mem_banks/*/properties"))
		if err != nil {
			return nil, err
		}
		for _, bank := range banks {
			of, err := readProperties(nodes, bank)
			if err != nil {
				return nil, err
			}
			if of["heap_type"] == 1 || of["heap_type"] == 2 { // on the device
				d.Memory += int64(of["size_in_bytes"])
			}
		}
		devices = append(devices, d)
	}
	return devices, nil
}

func readProperties(nodes fs.FS, file string) (map[string]uint64, error) {
	text, err := fs.ReadFile(nodes, file)
	if err != nil {
		return nil, err
	}
	properties := map[string]uint64{}
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		if n, err := strconv.ParseUint(value, 10, 64); err == nil {
			properties[name] = n
		}
	}
	return properties, nil
}

// visible are the devices that a variable names, by their numbers or the beginnings of their UUIDs.
// As for CUDA, the list ends at the first that there is not.
func visible(devices []Device, environment func(string) (string, bool), variable string) (named []Device) {
	list, given := environment(variable)
	if !given {
		return devices
	}
	for word := range strings.SplitSeq(list, ",") {
		word = strings.TrimSpace(word)
		at := slices.IndexFunc(devices, func(d Device) bool { return word != "" && strings.HasPrefix(d.UUID, word) })
		if n, err := strconv.Atoi(word); err == nil && n >= 0 && n < len(devices) {
			at = n
		}
		if at < 0 {
			break
		}
		named = append(named, devices[at])
	}
	return named
}

// Need is what an attempt needs: so many whole devices, or a share of one.
type Need struct {
	Whole int
	Share int // in thousandths of a device, below 1000; with one, Whole is 0
}

// Given are devices that an attempt has, until it gives them back.
type Given struct {
	UUIDs []string
	locks []*os.File
}

// ErrTaken says that others have the devices.
var ErrTaken = errors.New("other jobs of this user have the GPUs of this node")

// Take gives of some devices what is needed and nobody else has, by locks in a folder. Shares come
// of the device that has the least left of those that have enough, so that others stay whole.
func Take(devices []Device, need Need, folder string) (*Given, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	given, count := &Given{}, need.Whole
	lock := func(file *os.File) error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) }
	if need.Share > 0 {
		count, lock = 1, func(file *os.File) error { return lockShare(file, int64(need.Share)) }
		var err error
		if devices, err = fullestFirst(devices, int64(need.Share), folder); err != nil {
			return nil, err
		}
	}
	for _, d := range devices {
		if len(given.UUIDs) == count {
			break
		}
		file, err := openLock(folder, d)
		if err == nil {
			if err = lock(file); err != nil {
				_ = file.Close()
			}
		}
		if isHeld(err) {
			continue
		}
		if err != nil {
			given.GiveBack()
			return nil, fmt.Errorf("taking a GPU: %w", err)
		}
		given.UUIDs, given.locks = append(given.UUIDs, d.UUID), append(given.locks, file)
	}
	if len(given.UUIDs) < count {
		given.GiveBack()
		return nil, ErrTaken
	}
	return given, nil
}

// GiveBack lets others have the devices. Of none it does nothing.
func (g *Given) GiveBack() {
	if g == nil {
		return
	}
	for _, lock := range g.locks {
		_ = lock.Close()
	}
	g.UUIDs, g.locks = nil, nil
}

// AllHave reports whether all of some devices have so many bytes, and there are any: each of them
// may be given.
func AllHave(devices []Device, bytes int64) bool {
	return len(devices) > 0 && !slices.ContainsFunc(devices, func(d Device) bool { return d.Memory < bytes })
}
