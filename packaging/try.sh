#!/usr/bin/env bash
# Installs what packaging/release.sh made on clean systems, in folders, and uses it there.
#
#   packaging/try.sh OUT [FOLDER]
#
# The .deb in a Debian, the .rpm in an empty folder; and what is for another machine than this one
# under qemu, where its answers must be those of this one's. Needs root, debootstrap and a Debian
# archive (DEBIAN_MIRROR), rpm, and qemu-user-static. FOLDER keeps the Debian, to be used again.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
root=${2:-$work/debian}
mkdir -p "$root"
case $(uname -m) in
    x86_64) here_deb=amd64 here=x86_64 other=aarch64 ;;
    aarch64) here_deb=arm64 here=aarch64 other=x86_64 ;;
    *) echo "try: nothing is made for $(uname -m)" >&2; exit 2 ;;
esac
step() { printf '\n== %s\n' "$*"; }
inside() {
    local folder=$1
    shift
    chroot "$folder" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"
}

checksums() {
    step sha256sum -c
    (cd "$out" && sha256sum --quiet -c SHA256SUMS) && echo "all as listed"
}

in_debian() {
    [ -x "$root/usr/bin/dpkg" ] ||
        debootstrap --variant=minbase bookworm "$root" ${DEBIAN_MIRROR:-} >/dev/null
    cp "$out"/holdup_*_"$here_deb".deb "$root/tmp/holdup.deb"
    cp fixtures/imb_server_c4/perf.data "$root/tmp/perf.data"
    step dpkg -i holdup.deb
    inside "$root" dpkg -i /tmp/holdup.deb
    step holdup --version
    inside "$root" holdup --version
    step holdup diagnose perf.data
    inside "$root" holdup diagnose /tmp/perf.data >"$work/report"
    head -5 "$work/report"
    inside "$root" holdup diagnose --format json /tmp/perf.data |
        grep -q '"class": *"workload-imbalance"'
    step holdup export perf.data
    inside "$root" holdup export /tmp/perf.data --to /tmp/tables --quiet
    inside "$root" ls /tmp/tables | wc -l
    step what else there is
    # Minimal images leave documents out when they install packages: the package has them all the
    # same.
    inside "$root" dpkg -L holdup |
        grep -E 'man1/holdup(-diagnose)?\.1|completions/holdup|_holdup|holdup\.fish|THIRD-PARTY'
    step dpkg -r holdup
    inside "$root" dpkg -r holdup
    if inside "$root" sh -c 'command -v holdup'; then
        echo "try: still there" >&2
        exit 1
    fi
}

# No shell, no library: what the package holds is all there is.
from_rpm() {
    local empty=$work/empty
    mkdir -p "$empty/tmp"
    cp fixtures/imb_server_c4/perf.data "$empty/tmp/perf.data"
    step rpm --install "$(basename "$out"/holdup-*."$here".rpm)"
    rpm --root "$empty" --dbpath /var/lib/rpm --initdb
    rpm --root "$empty" --dbpath /var/lib/rpm --install --ignorearch --nosignature \
        "$out"/holdup-*."$here".rpm
    rpm --root "$empty" --dbpath /var/lib/rpm --query --list holdup |
        grep -E 'bin/|man1/holdup(-diagnose)?\.1|completions/holdup|_holdup|holdup\.fish|THIRD-PARTY'
    chroot "$empty" /usr/bin/holdup --version
    chroot "$empty" /usr/bin/holdup diagnose /tmp/perf.data | head -3
    rpm --root "$empty" --dbpath /var/lib/rpm --erase holdup
    [ ! -e "$empty/usr/bin/holdup" ]
}

elsewhere() {
    local archive=("$out"/holdup-*-"$other"-*.tar.gz) mine=("$out"/holdup-*-"$here"-*.tar.gz)
    [ -e "${archive[0]}" ] || { step "nothing was made for $other"; return; }
    tar -xzf "${archive[0]}" -C "$work"
    tar -xzf "${mine[0]}" -C "$work"
    step "qemu-$other-static holdup"
    for fixture in imb_server_c4/perf.data "$@"; do
        "qemu-$other-static" "$work"/holdup-*-"$other"-*/bin/holdup \
            diagnose "fixtures/$fixture" >"$work/there"
        "$work"/holdup-*-"$here"-*/bin/holdup diagnose "fixtures/$fixture" >"$work/here"
        cmp "$work/there" "$work/here"
        grep VERDICT "$work/there" | sed "s|^|$fixture: |"
    done
}

checksums
in_debian
from_rpm
elsewhere thr_mutex_perfz_c8/perf.data equivalence/ser_semop_c4/trace.dat.zst
echo "tried: all of it works"
