#!/usr/bin/env bash
# Makes what a release consists of: a static binary, completions and manual pages as .tar.gz and
# .deb, and their checksums.
#
#   packaging/release.sh OUT [TARGET]
#
# Needs Rust with TARGET (rustup target add x86_64-unknown-linux-musl), musl-gcc (Debian:
# musl-tools) and dpkg-deb. The same commit gives the same bytes.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
target=${2:-x86_64-unknown-linux-musl}
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
case $target in
    x86_64-*) arch=amd64 ;;
    aarch64-*) arch=arm64 ;;
    *) echo "release: which Debian architecture is $target?" >&2; exit 2 ;;
esac

# Paths of the machine that builds have no business in a binary.
RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=. --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=cargo" \
    cargo build --locked -p holdup --profile dist --target "$target"
built=${CARGO_TARGET_DIR:-target}/$target/dist/holdup
if file=$(ldd "$built" 2>&1); then
    case $file in *statically*) ;; *) echo "release: not static: $file" >&2; exit 1 ;; esac
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"

# As it lies below /usr.
tree=$work/usr
install -D -m 755 "$built" "$tree/bin/holdup"
"$tree/bin/holdup" man "$tree/share/man/man1"
complete() { mkdir -p "$tree/share/$2"; "$tree/bin/holdup" completions "$1" >"$tree/share/$2/$3"; }
complete bash bash-completion/completions holdup
complete zsh zsh/vendor-completions _holdup
complete fish fish/vendor_completions.d holdup.fish
doc=$tree/share/doc/holdup
install -D -m 644 README.md "$doc/README.md"
install -D -m 644 CHANGELOG.md "$doc/changelog"
install -D -m 644 LICENSE-MIT "$doc/copyright"
find "$tree" -type f -not -path '*/bin/*' -exec chmod 644 {} +

# The archive unpacks into a folder of its own, to be copied below /usr/local or run from there.
name=holdup-$version-$target
cp -a "$tree" "$work/$name"
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
    -C "$work" -c "$name" | gzip -9n >"$out/$name.tar.gz"

gzip -9n "$doc/changelog" "$tree"/share/man/man1/*.1
root=$work/root
mkdir -p "$root/DEBIAN"
mv "$tree" "$root/usr"
size=$(du -sk "$root/usr" | cut -f1)
cat >"$root/DEBIAN/control" <<EOF
Package: holdup
Version: $version
Architecture: $arch
Maintainer: holdup maintainers <maintainers@holdup.invalid>
Installed-Size: $size
Section: devel
Priority: optional
Suggests: linux-perf, trace-cmd
Description: says why a multiprocessor Linux system is slow
 holdup reads a recording of perf, trace-cmd or ftrace (or makes one itself),
 accounts for every CPU-second of the machine, names what held it up, shows the
 evidence, and says what mending it would gain.
EOF
find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
dpkg-deb --root-owner-group -Zxz --build "$root" "$out/holdup_${version}_$arch.deb" >/dev/null

cd "$out"
sha256sum "$name.tar.gz" "holdup_${version}_$arch.deb" | tee SHA256SUMS
