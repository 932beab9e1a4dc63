package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path"

	"github.com/cyphar/filepath-securejoin/pathrs-lite"
	"golang.org/x/sys/unix"
)

// bind shows a file or directory of the host. The source is opened once, so that what is looked at is what
// is mounted, whoever swaps the path meanwhile.
func (b *builder) bind(m Mount) error {
	source, err := os.OpenFile(m.Source, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("bind %s: %w", m.Source, errors.Unwrap(err))
	}
	defer source.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(source.Fd()), &st); err != nil {
		return fmt.Errorf("bind %s: %w", m.Source, err)
	}
	if !m.ReadOnly && st.Uid == 0 && !m.AsHostRoot {
		return fmt.Errorf("bind %s: it belongs to the host's root, and so would every file that the sandbox writes: chown it, bind it read-only, or allow it with host-root", m.Source)
	}
	tree, err := b.mapped(source, m, st)
	if err != nil {
		return err
	}
	defer tree.Close()
	at, err := b.bindPlace(m.Destination, st.Mode&unix.S_IFMT == unix.S_IFDIR)
	if err != nil {
		return err
	}
	defer at.Close()
	if err := unix.MoveMount(int(tree.Fd()), "", int(at.Fd()), "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH); err != nil {
		return fmt.Errorf("bind %s on %s: %w", m.Source, m.Destination, err)
	}
	return nil
}

// bindPlace opens the mount point: a directory for a directory, a file for anything else.
func (b *builder) bindPlace(dst string, isDir bool) (*os.File, error) {
	if isDir {
		return b.place(dst)
	}
	at, err := pathrs.OpenatInRoot(b.root, dst)
	if err == nil {
		return at, nil
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("make mount point %s: %w", dst, err)
	}
	parent, err := b.makeInside(path.Dir(path.Clean(dst)))
	if err != nil {
		return nil, err
	}
	defer parent.Close()
	fd, err := unix.Openat(int(parent.Fd()), path.Base(path.Clean(dst)), unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("make mount point %s: %w", dst, err)
	}
	return os.NewFile(uintptr(fd), dst), nil
}

// mapped is a detached copy of the source with its flags, and with the ids of its owner mapped to the
// sandbox's user where that is wanted.
func (b *builder) mapped(source *os.File, m Mount, st unix.Stat_t) (*os.File, error) {
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV, Propagation: unix.MS_PRIVATE}
	if m.ReadOnly {
		attr.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if m.NoExec {
		attr.Attr_set |= unix.MOUNT_ATTR_NOEXEC
	}
	plain := attr
	if !m.ReadOnly || st.Uid != 0 {
		ns, err := UserNS(b.mapping(st, m.AsHostRoot))
		if err != nil {
			return nil, fmt.Errorf("bind %s: %w", m.Source, err)
		}
		defer ns.Close()
		attr.Attr_set |= unix.MOUNT_ATTR_IDMAP
		attr.Userns_fd = uint64(ns.Fd())
	}
	tree, err := cloneWith(source, attr)
	if errors.Is(err, unix.EINVAL) && attr.Userns_fd != 0 {
		if m.ReadOnly {
			return cloneWith(source, plain) // its files show as nobody's
		}
		return nil, fmt.Errorf("bind %s: its file system (%s), or one mounted in it, cannot map ids: bind it read-only, or use a directory on ext4, xfs or btrfs: %w",
			m.Source, fsName(source), err)
	}
	if err != nil {
		return nil, fmt.Errorf("bind %s: %w", m.Source, err)
	}
	return tree, nil
}

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

// mapping shows the owner's files as the sandbox user's, and stores the user's as the owner's. A group of
// root's is not given away with them: where only the group is root's, files get the group that has the
// owner's number, as on systems where every user has a group of his own.
func (b *builder) mapping(st unix.Stat_t, asRoot bool) Mapping {
	gid := int(st.Gid)
	if gid == 0 && !asRoot {
		gid = int(st.Uid)
	}
	return Mapping{
		FromUID: int(st.Uid), ToUID: b.p.IDs.UIDBase + b.p.User.UID,
		FromGID: gid, ToGID: b.p.IDs.GIDBase + b.p.User.GID,
	}
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
