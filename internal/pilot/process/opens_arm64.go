package process

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_AARCH64

func openCalls() []uint32 { return []uint32{unix.SYS_OPENAT, unix.SYS_OPENAT2} }
