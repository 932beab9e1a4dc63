package rootfs

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// source is what a bind shows. It is opened once, so that what is looked at is what is mounted, whoever
// swaps the path meanwhile.
type source struct {
	file *os.File // nil for a tmpfs
	st   unix.Stat_t
	ids  Mapping // zero: its files keep their ids
}

func (s source) isDir() bool { return s.st.Mode&unix.S_IFMT == unix.S_IFDIR }

// openSources looks at all of them before anything is mounted, and has their mappings made meanwhile.
func (b *builder) openSources() error {
	for _, m := range b.p.Mounts {
		var s source
		if m.Kind == KindBind {
			var err error
			if s, err = b.openSource(m); err != nil {
				return fmt.Errorf("bind %s: %w", m.Source, err)
			}
		}
		b.sources = append(b.sources, s)
		b.spaces.start(s.ids)
	}
	return nil
}

func (b *builder) openSource(m Mount) (source, error) {
	file, err := openPath(m.Source)
	if err != nil {
		return source{}, err
	}
	s := source{file: file}
	err = unix.Fstat(int(file.Fd()), &s.st)
	if err == nil && !m.ReadOnly && !m.AsHostRoot {
		err = checkOwner(s.st)
	}
	if err != nil {
		file.Close()
		return source{}, err
	}
	if !m.ReadOnly || s.st.Uid != 0 {
		s.ids = b.mapping(s.st, m.AsHostRoot)
	}
	return s, nil
}

// checkOwner refuses what would let a sandbox make files of root's.
func checkOwner(st unix.Stat_t) error {
	switch {
	case st.Uid == 0:
		return errors.New("it belongs to the host's root, and so would every file that the sandbox writes: chown it, bind it read-only, or allow it with host-root")
	case st.Gid == 0 && st.Mode&unix.S_ISGID != 0:
		return errors.New("new files in it get the host's group root (set-group-id bit): chgrp it, bind it read-only, or allow it with host-root")
	}
	return nil
}

// mapping shows the owner's files as the sandbox user's, and stores the user's as the owner's. A group of
// root's is not given away with them: where only the group is root's, files get the group that has the
// owner's number, as on systems where every user has a group of his own. Root's group itself must be
// mapped, since the kernel lets nobody write to an inode with an id that is not; it shows as one that the
// sandbox has not, and cannot give to a file.
func (b *builder) mapping(st unix.Stat_t, asRoot bool) Mapping {
	ids := b.p.IDs
	m := Mapping{
		FromUID: int(st.Uid), ToUID: ids.UIDBase + b.p.User.UID,
		FromGID: int(st.Gid), ToGID: ids.GIDBase + b.p.User.GID,
	}
	if m.FromGID == 0 && !asRoot {
		m.FromGID = m.FromUID
		m.RootGID = ids.GIDBase + ids.Size // only here: a set-group-id directory of root's below would give it away
	}
	return m
}

// bind shows a file or directory of the host.
func (b *builder) bind(m Mount, s source) error {
	tree, err := b.tree(m, s)
	if err != nil {
		return fmt.Errorf("bind %s: %w", m.Source, err)
	}
	defer tree.Close()
	at, err := b.place(m.Destination, s.isDir())
	if err != nil {
		return fmt.Errorf("bind %s: %w", m.Source, err)
	}
	defer at.Close()
	if err := attach(tree, at.File, s.isDir()); err != nil {
		return fmt.Errorf("bind %s on %s: %w", m.Source, m.Destination, err)
	}
	return nil
}

// attach mounts a detached tree.
func attach(tree, at *os.File, dir bool) error {
	var st unix.Stat_t
	if err := unix.Fstat(int(at.Fd()), &st); err != nil {
		return err
	}
	switch isDir := st.Mode&unix.S_IFMT == unix.S_IFDIR; {
	case dir && !isDir:
		return fmt.Errorf("a directory cannot be shown on a file: %w", unix.ENOTDIR)
	case !dir && isDir:
		return fmt.Errorf("a file cannot be shown on a directory: %w", unix.EISDIR)
	}
	return unix.MoveMount(int(tree.Fd()), "", int(at.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
}

// tree is a detached copy of the source with its flags, and with the ids of its owner mapped where that is
// wanted.
func (b *builder) tree(m Mount, s source) (*os.File, error) {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if m.ReadOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if m.NoExec {
		attr.Attr_set |= unix.MOUNT_ATTR_NOEXEC
	}
	if s.ids == (Mapping{}) {
		return cloneWith(s.file, attr)
	}
	ns, err := b.spaces.get(s.ids)
	if err != nil {
		return nil, err
	}
	mapped := attr
	mapped.Attr_set |= unix.MOUNT_ATTR_IDMAP
	mapped.Userns_fd = uint64(ns.Fd())
	tree, err := cloneWith(s.file, mapped)
	// EINVAL: the file system cannot; EPERM: it is mapped already, or belongs to a user namespace
	if !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.EPERM) {
		return tree, err
	}
	if m.ReadOnly {
		return cloneWith(s.file, attr) // its files show as nobody's
	}
	return nil, fmt.Errorf("%s: %w", culprit(s.file, mapped, err), err)
}

// culprit says which mount, the source's or one below it, refuses to be idmapped, and why.
func culprit(source *os.File, attr unix.MountAttr, err error) string {
	at := source
	if mountable(source, attr) {
		if sub := submount(source, attr); sub != nil {
			defer sub.Close()
			at = sub
		}
	}
	why := fmt.Sprintf("its file system (%s) cannot map ids: bind it read-only, or use a directory on ext4, xfs or btrfs", fsName(at))
	if errors.Is(err, unix.EPERM) {
		why = "its ids are mapped already: bind it read-only, or the directory that it shows"
	}
	if at != source {
		return fmt.Sprintf("%s is mounted in it: %s", at.Name(), why)
	}
	return why
}

// mountable: whether one mount, without those below it, takes the flags.
func mountable(f *os.File, attr unix.MountAttr) bool {
	fd, err := unix.OpenTree(int(f.Fd()), "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH, &attr) == nil
}

// submount is the first mount below a directory that does not take the flags; nil if none is found.
func submount(f *os.File, attr unix.MountAttr) *os.File {
	top, err := os.Readlink(fdPath(f))
	if err != nil {
		return nil
	}
	text, err := os.ReadFile("/proc/thread-self/mountinfo")
	if err != nil {
		return nil
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line) // proc_pid_mountinfo(5): the fifth is the mount point
		if len(fields) < 5 {
			continue
		}
		at := unescape.Replace(fields[4])
		if !strings.HasPrefix(at, strings.TrimSuffix(top, "/")+"/") {
			continue
		}
		if sub, err := openPath(at); err == nil {
			if !mountable(sub, attr) {
				return sub
			}
			sub.Close()
		}
	}
	return nil
}

// cloneWith copies the mount that a file is in, with all below it, and changes the copy.
func cloneWith(source *os.File, attr unix.MountAttr) (*os.File, error) {
	tree, err := openTree(int(source.Fd()), "", unix.AT_EMPTY_PATH)
	if err != nil {
		return nil, err
	}
	if err := unix.MountSetattr(int(tree.Fd()), "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		tree.Close()
		return nil, err
	}
	return tree, nil
}

// openTree makes a detached copy of a mount and all below it.
func openTree(dir int, path string, flags uint) (*os.File, error) {
	fd, err := unix.OpenTree(dir, path, flags|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// fsName names a file system for an error message.
func fsName(f *os.File) string {
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil {
		return "unknown"
	}
	names := map[int64]string{
		unix.V9FS_MAGIC: "9p", unix.NFS_SUPER_MAGIC: "nfs", unix.OVERLAYFS_SUPER_MAGIC: "overlay", unix.TMPFS_MAGIC: "tmpfs",
		unix.FUSE_SUPER_MAGIC: "fuse", unix.EXT4_SUPER_MAGIC: "ext4", unix.XFS_SUPER_MAGIC: "xfs", unix.BTRFS_SUPER_MAGIC: "btrfs",
		unix.PROC_SUPER_MAGIC: "proc", unix.SYSFS_MAGIC: "sysfs",
	}
	if name, ok := names[int64(st.Type)]; ok {
		return name
	}
	return fmt.Sprintf("type %#x", st.Type)
}
