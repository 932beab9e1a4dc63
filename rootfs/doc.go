// Package rootfs builds the root of a sandbox: the base `host`, binds and tmpfs, with descriptors and the
// mount API of Linux 5.12 and later.
//
//	// on a locked thread, after unshare(CLONE_NEWNS) and with "/" made a slave
//	result, err := rootfs.Assemble(rootfs.Plan{Target: "/run/husk/1/root", Dev: "/run/husk/1/dev", …})
//
// Guarantees: everything is mounted nosuid, and nodev but for /dev; base and /dev are read-only, and so is,
// with all that is mounted below it, what was asked to be; what is made belongs to the sandbox's root. A
// destination is resolved inside the new root: no symlink in it leads out, nor to /proc, /sys, /dev or the
// root itself. Files that a sandbox makes on a writable bind belong to the owner of its source, and to root
// or root's group only where that was spelled out; the exception is a set-group-id directory of that group
// deeper in the source. What is bound is what was checked, whoever swaps the path meanwhile. No descriptor
// or process stays; on an error the mounts made so far go with the mount namespace.
//
// Limits: idmapped binds need a file system that supports them (ext4, xfs, btrfs, f2fs, erofs, and tmpfs
// from Linux 6.3 on) and is not idmapped already; others can be bound read-only, and show their files as
// nobody's. In a writable bind, files of other owners are read-only. A destination that is missing on a
// bind is made there, as the owner of its source. Files copied into /etc have at most 1 MiB each.
//
// It does not protect what is below a bind from the program that it was given to, nor hide files below
// /usr that are readable by all, nor the path of a bind's source, which mountinfo shows.
package rootfs
