package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// usr shows the host's /usr read-only, and the links (or, where /usr is not merged, the directories)
// beside it as they are on the host.
func (b *builder) usr() error {
	if err := b.showHost("usr"); err != nil {
		return err
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		target, err := os.Readlink(b.host + "/" + name)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case errors.Is(err, unix.EINVAL): // no link
			err = b.showDir(name)
		case err == nil:
			err = b.symlink(target, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// showDir makes a directory and binds the host's to it.
func (b *builder) showDir(name string) error {
	if err := b.mkdir(name); err != nil {
		return err
	}
	return b.showHost(name)
}

// showHost binds a directory of the host with all that is mounted in it, read-only. It is not idmapped:
// its files show as nobody's, and what only root can read on the host stays unreadable.
func (b *builder) showHost(name string) error {
	tree, err := openTree(unix.AT_FDCWD, b.host+"/"+name, 0)
	if err != nil {
		return fmt.Errorf("bind host's /%s: %w", name, err)
	}
	defer tree.Close()
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(int(tree.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("make host's /%s read-only: %w", name, err)
	}
	if err := unix.MoveMount(int(tree.Fd()), "", int(b.root.Fd()), name, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach host's /%s: %w", name, err)
	}
	return nil
}

// etc makes the few files that programs look for, and shows what they need of the host's. Nothing there
// may hold a secret: no shadow, no machine-id, no private keys (pki/tls/private), no settings with
// passwords or tokens (npmrc, pip.conf, maven's settings.xml).
func (b *builder) etc() error {
	for name, text := range b.madeUp() {
		if err := b.write("etc/"+name, []byte(text)); err != nil {
			return err
		}
	}
	present, err := namesIn(b.host + "/etc")
	if err != nil {
		return fmt.Errorf("read host's /etc: %w", err)
	}
	// each bind costs at every execution, so small things are copied
	copied := []string{
		"ld.so.cache", "ld.so.conf", "ld.so.conf.d/*.conf", "localtime", "timezone", "os-release", "debian_version",
		"protocols", "services", "gai.conf", "inputrc", "magic", "magic.mime", "ssl/openssl.cnf",
		"python3/debian_config", "python3*/sitecustomize.py", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/java/cacerts",
		"crypto-policies/config", "crypto-policies/back-ends/*",
	}
	// … and what is large is bound
	bound := []string{"alternatives", "ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted", "java", "java-*-openjdk"}
	if err := b.each(b.matching(copied, present), b.copyFile); err != nil {
		return err
	}
	return b.each(b.matching(bound, present), b.showEtc)
}

// namesIn lists a directory.
func namesIn(dir string) ([]string, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// matching are the files like etc/localtime by patterns below /etc, of which present is a list.
func (b *builder) matching(patterns, present []string) []string {
	var names []string
	for _, pattern := range patterns {
		first, rest, _ := strings.Cut(pattern, "/")
		for _, name := range present {
			if ok, _ := path.Match(first, name); ok { // fails for a bad pattern only
				names = append(names, b.below(path.Join("etc", name), rest)...)
			}
		}
	}
	return names
}

// below is dir/rest, or where the last element of rest is a pattern, what matches it.
func (b *builder) below(dir, rest string) []string {
	if !strings.Contains(rest, "*") {
		return []string{path.Join(dir, rest)}
	}
	matches, _ := filepath.Glob(b.host + "/" + path.Join(dir, rest))
	for i, name := range matches {
		matches[i] = strings.TrimPrefix(name, b.host+"/")
	}
	return matches
}

func (b *builder) each(names []string, show func(string) error) error {
	for _, name := range names {
		if err := show(name); err != nil {
			return err
		}
	}
	return nil
}

// parent makes the directories that a file below /etc is in.
func (b *builder) parent(name string) error {
	dir := path.Dir(name)
	if dir == "etc" || b.made[dir] {
		return nil
	}
	if err := b.parent(dir); err != nil {
		return err
	}
	if b.made == nil {
		b.made = map[string]bool{}
	}
	b.made[dir] = true
	return b.mkdir(dir)
}

// showEtc binds a directory below /etc; a link or file is copied.
func (b *builder) showEtc(name string) error {
	var st unix.Stat_t
	err := unix.Lstat(b.host+"/"+name, &st)
	if err != nil || st.Mode&unix.S_IFMT != unix.S_IFDIR {
		return b.copyFile(name)
	}
	if err := b.parent(name); err != nil {
		return err
	}
	return b.showDir(name)
}

func (b *builder) madeUp() map[string]string {
	u := b.p.User
	// the names that base host has; runtime knows the same
	passwd := "root:x:0:0:root:/root:/bin/sh\nsandbox:x:1000:1000:sandbox:/home/sandbox:/bin/sh\n"
	group := "root:x:0:\nsandbox:x:1000:\n"
	if u.UID != 0 && u.UID != 1000 && u.UID != 65534 { // a number that has no name of its own
		passwd += fmt.Sprintf("u%d:x:%d:%d::%s:/bin/sh\n", u.UID, u.UID, u.GID, u.Home)
	}
	own := "127.0.1.1\t" + b.p.Hostname + "\n"
	if b.p.Hostname == "" {
		own = ""
	}
	files := map[string]string{
		"passwd":        passwd + "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"group":         group + "nogroup:x:65534:\n",
		"hostname":      b.p.Hostname + "\n",
		"hosts":         "127.0.0.1\tlocalhost\n" + own + "::1\tlocalhost ip6-localhost ip6-loopback\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
		"shells":        "/bin/sh\n/bin/bash\n",
		"resolv.conf":   "",
	}
	if b.p.HostNetwork {
		// a host that has none has no names to resolve
		text, _ := os.ReadFile(b.host + "/etc/resolv.conf")
		files["resolv.conf"] = string(text)
	}
	return files
}
