package process

import "golang.org/x/sys/unix"

const architecture = unix.AUDIT_ARCH_X86_64

func openCalls() []uint32 { return []uint32{unix.SYS_OPENAT, unix.SYS_OPENAT2, unix.SYS_OPEN} }
