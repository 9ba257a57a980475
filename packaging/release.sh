#!/usr/bin/env bash
# Makes what a release consists of, for one target: a static binary with manual pages, completions
# and licences as .tar.gz, .deb and .rpm, a bill of materials, and the checksums of all in OUT.
#
#   packaging/release.sh OUT [TARGET]
#
# TARGET is x86_64-unknown-linux-musl or aarch64-unknown-linux-musl. Needs Rust with it (rustup
# target add), python3, binutils, dpkg-deb and rpmbuild; a C compiler for it: musl-gcc (Debian:
# musl-tools) or aarch64-linux-gnu-gcc with the headers of musl (gcc-aarch64-linux-gnu,
# musl-dev:arm64); and qemu (qemu-user-static) where this machine is another one.
# The same commit gives the same bytes, wherever it lies.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,12s/^# \{0,1\}//p' "$0" >&2; exit 2; }
mkdir -p "$1"
out=$(cd "$1" && pwd)
target=${2:-x86_64-unknown-linux-musl}
cd "$(dirname "$0")/.."

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
export SOURCE_DATE_EPOCH
machine=${target%%-*}
case $target in
    x86_64-unknown-linux-musl) arch=amd64 ;;
    aarch64-unknown-linux-musl) arch=arm64 ;;
    *) echo "release: which C compiler and Debian architecture has $target?" >&2; exit 2 ;;
esac
name=holdup-$version-$target
built=${CARGO_TARGET_DIR:-$PWD/target}/$target/dist/holdup
run=()
[ "$(uname -m)" = "$machine" ] || run=("qemu-$machine-static")

build() {
    # Paths of the machine that builds have no business in a binary, nor in those of its C parts.
    local home=${CARGO_HOME:-$HOME/.cargo} headers=
    if [ "$machine" = aarch64 ] && [ "$(uname -m)" != aarch64 ]; then
        # The compiler's own headers are glibc's.
        headers="-nostdinc -isystem /usr/include/aarch64-linux-musl"
        headers="$headers -isystem $(aarch64-linux-gnu-gcc -print-file-name=include) "
        export CC_aarch64_unknown_linux_musl=aarch64-linux-gnu-gcc
        export AR_aarch64_unknown_linux_musl=aarch64-linux-gnu-ar
        export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_LINKER=rust-lld
    fi
    export "CFLAGS_${target//-/_}=$headers-ffile-prefix-map=$home=cargo"
    RUSTFLAGS="--remap-path-prefix=$PWD=. --remap-path-prefix=$home=cargo \
--remap-path-prefix=${CARGO_TARGET_DIR:-$PWD/target}=target" \
        cargo build --locked -p holdup --profile dist --target "$target"
    if LC_ALL=C readelf -lW "$built" | grep -q INTERP; then
        echo "release: $built asks for a dynamic linker" >&2
        exit 1
    fi
    local leaks
    leaks=$(strings -n 8 "$built" | grep -F -e "$PWD/" -e "$home/" || true)
    [ -z "$leaks" ] || { printf 'release: paths of this machine:\n%s\n' "$leaks" >&2; exit 1; }
}

# As it lies below /usr.
fill() {
    local tree=$1 doc=$1/share/doc/holdup
    install -D -m 755 "$built" "$tree/bin/holdup"
    "${run[@]}" "$tree/bin/holdup" man "$tree/share/man/man1"
    complete() {
        mkdir -p "$tree/share/$2"
        "${run[@]}" "$tree/bin/holdup" completions "$1" >"$tree/share/$2/$3"
    }
    complete bash bash-completion/completions holdup
    complete zsh zsh/vendor-completions _holdup
    complete fish fish/vendor_completions.d holdup.fish
    install -D -m 644 README.md "$doc/README.md"
    install -D -m 644 CHANGELOG.md "$doc/changelog"
    install -D -m 644 LICENSE-MIT "$doc/copyright"
    install -D -m 644 LICENSE-APACHE "$doc/LICENSE-APACHE"
    packaging/bill.py "$target" "$out/$name.cdx.json" "$doc/THIRD-PARTY.txt"
    # What the standard library is made of, musl among it.
    install -m 644 "$(rustc --print sysroot)/share/doc/rust/COPYRIGHT-library.html" "$doc/RUST.html"
    find "$tree" -type f -not -path '*/bin/*' -exec chmod 644 {} +
    find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
}

# The archive unpacks into a folder of its own, to be copied below /usr/local or run from there.
archive() {
    cp -a "$1" "$work/$name"
    tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" \
        -C "$work" -c "$name" | gzip -9n >"$out/$name.tar.gz"
}

describe() {
    fold -s -w 78 <<'EOF' | sed 's/ *$//'
holdup reads a recording of perf, trace-cmd or ftrace (or makes one itself), accounts for every CPU-second of the machine, names what held it up, shows the evidence, and says what fixing it would gain.
EOF
}

deb() {
    local root=$work/deb
    mkdir -p "$root/DEBIAN"
    cp -a "$1" "$root/usr"
    gzip -9n "$root"/usr/share/doc/holdup/{changelog,RUST.html,THIRD-PARTY.txt} \
        "$root"/usr/share/man/man1/*.1
    {
        cat <<EOF
Package: holdup
Version: $version
Architecture: $arch
Maintainer: holdup maintainers <maintainers@holdup.invalid>
Installed-Size: $(du -sk --apparent-size "$root/usr" | cut -f1)
Section: devel
Priority: optional
Suggests: linux-perf, trace-cmd
Description: says why a multiprocessor Linux system is slow
EOF
        describe | sed 's/^/ /'
    } >"$root/DEBIAN/control"
    find "$root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    dpkg-deb --root-owner-group -Zxz --build "$root" "$out/holdup_${version}_$arch.deb" >/dev/null
}

rpm() {
    local top=$work/rpm tree=$work/rpm/tree
    mkdir -p "$top" "$tree"
    cp -a "$1" "$tree/usr"
    # Fedora's place for them.
    mv "$tree/usr/share/zsh/vendor-completions" "$tree/usr/share/zsh/site-functions"
    gzip -9n "$tree"/usr/share/man/man1/*.1
    {
        cat <<EOF
Name: holdup
Version: $version
Release: 1
Summary: Says why a multiprocessor Linux system is slow
License: MIT OR Apache-2.0
AutoReqProv: no
%description
EOF
        describe
        cat <<EOF
%install
cp -a $tree/. %{buildroot}/
%files
EOF
        (cd "$tree" && find . -type f | sort | sed 's/^\.\(.*\)/"\1"/')
    } >"$top/holdup.spec"
    # Nothing is compressed or stripped again, and neither host nor time of the build is kept.
    rpmbuild --quiet -bb --target "$machine-linux" \
        --define "_topdir $top" --define "_rpmdir $out" \
        --define '_rpmfilename %{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm' \
        --define "__os_install_post %{nil}" --define "debug_package %{nil}" \
        --define "_build_id_links none" --define "_buildhost localhost" \
        --define "use_source_date_epoch_as_buildtime 1" \
        --define "clamp_mtime_to_source_date_epoch 1" --define "_binary_payload w9.gzdio" \
        "$top/holdup.spec"
}

build
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
tree=$work/usr
mkdir "$tree"
fill "$tree"
archive "$tree"
deb "$tree"
rpm "$tree"
cd "$out"
sha256sum holdup[-_]* >SHA256SUMS
cat SHA256SUMS
