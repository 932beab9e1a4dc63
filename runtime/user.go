package runtime

import (
	"fmt"
	"strconv"
	"strings"
)

// idsPerSandbox is the size of a sandbox's id range: ids 0 to 65535 exist inside.
const idsPerSandbox = 65536

// user is who a command runs as, inside.
type user struct {
	uid, gid uint32
	name     string
	home     string
}

// The base host's own users; /etc/passwd inside says the same.
const (
	hostUserName = "sandbox"
	hostUserID   = 1000
	hostHome     = "/home/sandbox"
)

// parseUser reads "", "name", "uid" or "uid:gid" against the base host's users. Numbers are plain
// decimal digits: a sign, a space or an empty half is an error, never uid 0.
func parseUser(text string) (user, error) {
	if text == "" {
		text = hostUserName
	}
	id, group, grouped := strings.Cut(text, ":")
	u, err := lookUpUser(id)
	if err != nil {
		return user{}, fmt.Errorf("user %q: %w", text, err)
	}
	if grouped {
		if u.gid, err = parseID(group); err != nil {
			return user{}, fmt.Errorf("user %q: group %w", text, err)
		}
	}
	return u, nil
}

func lookUpUser(id string) (user, error) {
	switch id {
	case "root", "0":
		return user{0, 0, "root", "/root"}, nil
	case hostUserName, "1000":
		return user{hostUserID, hostUserID, hostUserName, hostHome}, nil
	case "nobody", "65534":
		return user{65534, 65534, "nobody", hostHome}, nil
	}
	if id == "" || id[0] < '0' || id[0] > '9' {
		return user{}, fmt.Errorf("no such user in base host; it has root, %s and nobody, and any number", hostUserName)
	}
	n, err := parseID(id)
	return user{n, n, id, hostHome}, err
}

func parseID(text string) (uint32, error) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%q: want a number from 0 to %d", text, idsPerSandbox-1)
		}
	}
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil || n >= idsPerSandbox {
		return 0, fmt.Errorf("%q: want a number from 0 to %d", text, idsPerSandbox-1)
	}
	return uint32(n), nil
}

// Capabilities of mapped root over its sandbox: CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID
// NET_BIND_SERVICE SYS_CHROOT. Never SYS_ADMIN, NET_ADMIN, SYS_PTRACE. Others have none.
const rootCaps = 1<<0 | 1<<1 | 1<<3 | 1<<4 | 1<<5 | 1<<6 | 1<<7 | 1<<10 | 1<<18

func (u user) caps() uint64 {
	if u.uid == 0 {
		return rootCaps
	}
	return 0
}

// capNames are the same by name, as seccomp profiles want them.
func (u user) capNames() []string {
	if u.uid != 0 {
		return nil
	}
	return []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID",
		"CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT",
	}
}
