#!/bin/bash
# setup.sh FOLDER: what the pairs of pairs.tsv need, as root on Debian 12. Node 20, JDK 17 with Maven, Rust and Python
# are there before. What cannot be had is left out; `pairs.py try` shows which pairs that costs.
set -u
mkdir -p "$1"
PAIRS=$(realpath "$1") HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
cd "$PAIRS" || exit 1

# No server is to start by itself.
[ -e /usr/sbin/policy-rc.d ] || { printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d; }
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends apache2 apache2-utils beanstalkd bindfs \
    bzip2 dnsperf eatmydata erlang-base graphicsmagick haproxy lbzip2 libnbd-bin nbdkit ninja-build p7zip-full parallel \
    plzip ripgrep rocksdb-tools squashfs-tools stockfish unbound x265

# Some hundred files to unpack.
mkdir -p debs
(cd debs && chmod 777 . && apt-get download -q tzdata git-man python3-docutils)

python3 -m venv venv
venv/bin/pip install -q aiohttp dask duckdb fasteners filelock grpcio h5py joblib lmdb numpy waitress

npm install --prefix npm --no-audit --no-fund bcrypt esbuild proper-lockfile terser

mkdir -p rs jars
cp -r "$HERE/rust/." rs
cargo build --release --manifest-path rs/Cargo.toml

cat > jars.xml <<'X'
<project><modelVersion>4.0.0</modelVersion><groupId>pairs</groupId><artifactId>pairs</artifactId><version>0</version>
<dependencies>
<dependency><groupId>org.slf4j</groupId><artifactId>slf4j-api</artifactId><version>2.0.9</version></dependency>
<dependency><groupId>com.h2database</groupId><artifactId>h2</artifactId><version>2.2.224</version></dependency>
<dependency><groupId>com.zaxxer</groupId><artifactId>HikariCP</artifactId><version>5.1.0</version></dependency>
<dependency><groupId>ch.qos.logback</groupId><artifactId>logback-classic</artifactId><version>1.4.14</version></dependency>
</dependencies></project>
X
mvn -q -B -f jars.xml dependency:copy-dependencies -DoutputDirectory="$PAIRS/jars"
javac -cp "jars/*" -d classes "$HERE/java/Pairs.java" && jar cf jars/pairs.jar -C classes .
