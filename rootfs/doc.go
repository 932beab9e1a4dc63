// Package rootfs builds the root of a sandbox: the base `host`, binds and tmpfs, with descriptors and the
// mount API of Linux 5.12 and later.
//
//	// on a locked thread, after unshare(CLONE_NEWNS) and with "/" made a slave
//	result, err := rootfs.Assemble(rootfs.Plan{Target: "/run/husk/1/root", Dev: "/run/husk/1/dev", …})
//
// Guarantees: everything is mounted nosuid, and nodev but for /dev; the base is read-only, and so is what
// was asked to be; a destination is resolved inside the new root, and no symlink in it leads out; files
// that a sandbox makes on a writable bind belong to the owner of its source, and to root only where that
// was spelled out. On an error the mounts made so far go with the mount namespace.
//
// Limits: idmapped binds need a file system that supports them (ext4, xfs, btrfs, f2fs, erofs, and tmpfs
// from Linux 6.3 on); others can be bound read-only, and show their files as nobody's.
//
// It does not protect what is below a bind from the program that it was given to, nor hide files below
// /usr that are readable by all.
package rootfs
