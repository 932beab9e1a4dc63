#!/bin/sh
# build.sh: builds the guest for both architectures and puts the binaries beside this script, where
# they are checked in and embedded, so that `go build` and `go get` need no further compiler.
# With --check it compares a fresh build with the checked-in ones instead. Byte equality is only
# promised for the compiler named in COMPILER; with another one the check says so and only proves
# that the sources still compile.
set -eu
cd "$(dirname "$0")"

flags='-std=gnu11 -Os -Wall -Wextra -Werror -ffreestanding -fno-builtin -fno-stack-protector
	-fno-asynchronous-unwind-tables -fno-pie -fcf-protection=none -no-pie -nostdlib -static -s
	-Wl,--build-id=none -Wl,-z,noexecstack -Wl,-z,norelro -Wl,-z,noseparate-code'

# compile ARCH COMPILER OUT
compile() {
	f=$flags
	[ "$1" = amd64 ] || f=$(echo "$f" | sed 's/-fcf-protection=none//')
	"$2" $f -Wa,--noexecstack -o "$3" src/guest.c
}

compiler() { # ARCH: the native gcc or the cross compiler
	case $1-$(uname -m) in
	amd64-x86_64 | arm64-aarch64) echo gcc ;;
	amd64-*) echo x86_64-linux-gnu-gcc ;;
	arm64-*) echo aarch64-linux-gnu-gcc ;;
	esac
}

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
for arch in amd64 arm64; do
	cc=$(compiler $arch)
	if ! command -v "$cc" >/dev/null; then
		[ "${1:-}" = --check ] || { echo "build.sh: needs $cc (Debian: gcc-${cc%-gcc})" >&2; exit 1; }
		echo "build.sh: no $cc here, guest_$arch not checked" >&2
		continue
	fi
	compile $arch "$cc" "$tmp/guest_$arch"
	"$cc" --version | sed -n "1s/^[^ ]* */$arch: /p" >>"$tmp/COMPILER"
	[ "${1:-}" = --check ] || continue
	if ! grep -qxF "$(grep "^$arch:" "$tmp/COMPILER")" COMPILER; then
		echo "build.sh: guest_$arch compiles; not compared, since it was built by another compiler ($(grep "^$arch:" COMPILER))" >&2
	elif ! cmp "$tmp/guest_$arch" "guest_$arch"; then
		echo "build.sh: guest_$arch is not what src/ builds: run runtime/internal/guest/build.sh" >&2
		failed=1
	fi
done
[ "${1:-}" = --check ] || cp "$tmp"/* .
exit $failed
