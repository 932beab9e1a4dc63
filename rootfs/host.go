package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// usr shows the host's /usr read-only, and the links (or, where /usr is not merged, the directories)
// beside it as they are on the host.
func (b *builder) usr() error {
	if err := b.showHost("/usr", "usr"); err != nil {
		return err
	}
	for _, name := range []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"} {
		info, err := os.Lstat("/" + name)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil:
			return fmt.Errorf("look at host: %w", err)
		case info.Mode()&os.ModeSymlink != 0:
			err = b.copyLink("/"+name, name)
		case info.IsDir():
			if err = b.mkdir(name); err == nil {
				err = b.showHost("/"+name, name)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) copyLink(from, name string) error {
	target, err := os.Readlink(from)
	if err != nil {
		return fmt.Errorf("copy link: %w", err)
	}
	return b.symlink(target, name)
}

// showHost binds a directory or file of the host with all that is mounted in it, read-only. It is not
// idmapped: its files show as nobody's, and what only root can read on the host stays unreadable.
func (b *builder) showHost(from, name string) error {
	tree, err := openTree(unix.AT_FDCWD, from, 0)
	if err != nil {
		return fmt.Errorf("bind host's %s: %w", from, err)
	}
	defer tree.Close()
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(int(tree.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("make host's %s read-only: %w", from, err)
	}
	if err := unix.MoveMount(int(tree.Fd()), "", int(b.root.Fd()), name, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("attach host's %s: %w", from, err)
	}
	return nil
}

// openTree makes a detached copy of a mount and all below it.
func openTree(dir int, path string, flags uint) (*os.File, error) {
	fd, err := unix.OpenTree(dir, path, flags|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// etc makes the few files that programs look for, and shows what they need of the host's. Nothing there
// may hold a secret: no shadow, no machine-id, no settings with passwords or tokens (npmrc, pip.conf,
// maven's settings.xml).
func (b *builder) etc() error {
	for name, text := range b.madeUp() {
		if err := b.write("etc/"+name, text); err != nil {
			return err
		}
	}
	// each bind costs at every execution, so small things are copied
	copied := []string{
		"/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/localtime", "/etc/timezone", "/etc/os-release", "/etc/debian_version",
		"/etc/mime.types", "/etc/protocols", "/etc/services", "/etc/gai.conf", "/etc/inputrc", "/etc/magic", "/etc/magic.mime",
		"/etc/ssl/openssl.cnf", "/etc/python3/debian_config", "/etc/python3*/sitecustomize.py",
	}
	for _, pattern := range copied {
		if err := b.each(pattern, b.copyFile); err != nil {
			return err
		}
	}
	// … and what is large is bound
	bound := []string{
		"/etc/alternatives", "/etc/ssl/certs", "/etc/pki/tls", "/etc/pki/ca-trust", "/etc/pki/java", "/etc/crypto-policies",
		"/etc/java-*-openjdk", "/etc/java",
	}
	for _, pattern := range bound {
		if err := b.each(pattern, b.showEtc); err != nil {
			return err
		}
	}
	return nil
}

// each calls show for what the host has by that pattern.
func (b *builder) each(pattern string, show func(string) error) error {
	matches, err := filepath.Glob(pattern)
	if err != nil {
		return fmt.Errorf("find %s: %w", pattern, err)
	}
	for _, from := range matches {
		if err := b.parent(from); err != nil {
			return err
		}
		if err := show(from); err != nil {
			return err
		}
	}
	return nil
}

// parent makes the directory below /etc that a path is in.
func (b *builder) parent(from string) error {
	dir := filepath.Dir(from[1:])
	if _, err := os.Lstat(b.at(dir)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return b.mkdir(dir)
}

func (b *builder) madeUp() map[string]string {
	u := b.p.User
	passwd := "root:x:0:0:root:/root:/bin/sh\nsandbox:x:1000:1000:sandbox:/home/sandbox:/bin/sh\n"
	group := "root:x:0:\nsandbox:x:1000:\n"
	if u.UID != 0 && u.UID != 1000 && u.UID != 65534 { // a number that has no name of its own
		passwd += fmt.Sprintf("u%d:x:%d:%d::%s:/bin/sh\n", u.UID, u.UID, u.GID, u.Home)
	}
	files := map[string]string{
		"passwd":        passwd + "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"group":         group + "nogroup:x:65534:\n",
		"hostname":      b.p.Hostname + "\n",
		"hosts":         "127.0.0.1\tlocalhost\n127.0.1.1\t" + b.p.Hostname + "\n::1\tlocalhost ip6-localhost ip6-loopback\n",
		"nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\nservices: files\nprotocols: files\n",
		"shells":        "/bin/sh\n/bin/bash\n",
		"resolv.conf":   "",
	}
	if b.p.HostNetwork {
		// a host that has none has no names to resolve
		text, _ := os.ReadFile("/etc/resolv.conf")
		files["resolv.conf"] = string(text)
	}
	return files
}

func (b *builder) write(name, text string) error {
	err := os.WriteFile(b.at(name), []byte(text), 0o644)
	if err == nil {
		err = os.Chmod(b.at(name), 0o644)
	}
	if err != nil {
		return fmt.Errorf("make root: %w", err)
	}
	return b.own(b.at(name))
}

// maxCopy bounds a copied file; the root's tmpfs is small.
const maxCopy = 1 << 20

// copyFile copies a link as a link, and a file that all may read; others, and missing ones, are left out.
func (b *builder) copyFile(from string) error {
	info, err := os.Lstat(from)
	switch {
	case err != nil:
		return nil //nolint:nilerr // the host has none
	case info.Mode()&os.ModeSymlink != 0:
		return b.copyLink(from, from[1:])
	case !info.Mode().IsRegular() || info.Mode()&0o004 == 0 || info.Size() > maxCopy:
		return nil
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return fmt.Errorf("copy host's file: %w", err)
	}
	return b.write(from[1:], string(text))
}

// showEtc binds a directory below /etc; a link or file is copied.
func (b *builder) showEtc(from string) error {
	info, err := os.Lstat(from)
	if err != nil || !info.IsDir() {
		return b.copyFile(from)
	}
	if err := b.mkdir(from[1:]); err != nil {
		return err
	}
	return b.showHost(from, from[1:])
}
