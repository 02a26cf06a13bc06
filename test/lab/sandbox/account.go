package sandbox

import (
	"fmt"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// assume gives up everything that the account does not have. The order
// matters: the bounding set needs CAP_SETPCAP, the user change CAP_SETUID.
func (a *Account) assume() error {
	keep, err := capabilityMask(a.Capabilities)
	if err != nil {
		return err
	}
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		if keep&(1<<c) != 0 {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0); err != nil && err != unix.EINVAL {
			return fmt.Errorf("sandbox: drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("sandbox: clear ambient capabilities: %w", err)
	}
	if a.NoNewPrivileges {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("sandbox: no new privileges: %w", err)
		}
	}
	if err := unix.Setgroups(a.Groups); err != nil {
		return fmt.Errorf("sandbox: set groups: %w", err)
	}
	if err := unix.Setresgid(a.GID, a.GID, a.GID); err != nil {
		return fmt.Errorf("sandbox: become group %d: %w", a.GID, err)
	}
	if err := unix.Setresuid(a.UID, a.UID, a.UID); err != nil {
		return fmt.Errorf("sandbox: become user %d: %w", a.UID, err)
	}
	if a.UID != 0 {
		return nil // the kernel has taken them all, as a runtime without ambient capabilities does
	}
	return setCapabilities(keep)
}

func setCapabilities(mask uint64) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	for i := range data {
		bits := uint32(mask >> (32 * i))
		data[i] = unix.CapUserData{Effective: bits, Permitted: bits}
	}
	_, _, errno := unix.RawSyscall(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])), 0)
	if errno != 0 {
		return fmt.Errorf("sandbox: capset: %w", errno)
	}
	return nil
}

func capabilityMask(names []string) (uint64, error) {
	numbers := capabilityNumbers()
	var mask uint64
	for _, name := range names {
		short := strings.TrimPrefix(strings.ToUpper(name), "CAP_")
		n, ok := numbers[short]
		if !ok {
			return 0, fmt.Errorf("sandbox: unknown capability %q", name)
		}
		mask |= 1 << n
	}
	return mask, nil
}

// capabilityNumbers are those that a container is ever given by name.
func capabilityNumbers() map[string]uint {
	return map[string]uint{
		"CHOWN":            unix.CAP_CHOWN,
		"DAC_OVERRIDE":     unix.CAP_DAC_OVERRIDE,
		"FOWNER":           unix.CAP_FOWNER,
		"FSETID":           unix.CAP_FSETID,
		"KILL":             unix.CAP_KILL,
		"SETGID":           unix.CAP_SETGID,
		"SETUID":           unix.CAP_SETUID,
		"SETPCAP":          unix.CAP_SETPCAP,
		"NET_BIND_SERVICE": unix.CAP_NET_BIND_SERVICE,
		"NET_BROADCAST":    unix.CAP_NET_BROADCAST,
		"NET_ADMIN":        unix.CAP_NET_ADMIN,
		"NET_RAW":          unix.CAP_NET_RAW,
		"IPC_LOCK":         unix.CAP_IPC_LOCK,
		"SYS_CHROOT":       unix.CAP_SYS_CHROOT,
		"SYS_PTRACE":       unix.CAP_SYS_PTRACE,
		"SYS_ADMIN":        unix.CAP_SYS_ADMIN,
		"SYS_NICE":         unix.CAP_SYS_NICE,
		"SYS_RESOURCE":     unix.CAP_SYS_RESOURCE,
		"MKNOD":            unix.CAP_MKNOD,
		"AUDIT_WRITE":      unix.CAP_AUDIT_WRITE,
		"SETFCAP":          unix.CAP_SETFCAP,
		"BPF":              unix.CAP_BPF,
		"PERFMON":          unix.CAP_PERFMON,
	}
}
