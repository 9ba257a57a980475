#!/usr/bin/env bash
# Installs the .deb of packaging/release.sh on a clean Debian, in a folder, and uses it there.
#
#   packaging/try.sh OUT [FOLDER]
#
# Needs root, debootstrap and a Debian archive. FOLDER is kept and used again; without it a
# temporary one is made and removed.
set -euo pipefail
[ $# -ge 1 ] || { sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2; }
out=$(cd "$1" && pwd)
root=${2:-}
if [ -z "$root" ]; then
    root=$(mktemp -d)
    trap 'rm -rf "$root"' EXIT
fi
cd "$(dirname "$0")/.."
[ -x "$root/usr/bin/dpkg" ] ||
    debootstrap --variant=minbase bookworm "$root" ${DEBIAN_MIRROR:-} >/dev/null

cp "$out"/holdup_*.deb "$root/tmp/holdup.deb"
cp fixtures/imb_server_c4/perf.data "$root/tmp/perf.data"
here() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root "$@"; }
step() { printf '\n== %s\n' "$*"; }

step dpkg -i holdup.deb
here dpkg -i /tmp/holdup.deb
step holdup --version
here holdup --version
step holdup diagnose perf.data
here holdup diagnose /tmp/perf.data | head -5
here holdup diagnose --format json /tmp/perf.data | grep -q '"class": *"workload-imbalance"'
step holdup export perf.data
here holdup export /tmp/perf.data --to /tmp/tables --quiet
here ls /tmp/tables | wc -l
step what else there is
# Minimal images leave documents out when they install packages: the package has them all the same.
here dpkg -L holdup | grep -E 'man1/holdup(-diagnose)?\.1|completions/holdup|_holdup|holdup\.fish'
step dpkg -r holdup
here dpkg -r holdup
if here sh -c 'command -v holdup'; then echo "try: still there" >&2; exit 1; fi
echo "tried: all of it works"
