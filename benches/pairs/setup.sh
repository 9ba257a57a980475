#!/bin/bash
# setup.sh FOLDER: what the pairs of pairs.tsv need, as root on Debian 12. Node 20, JDK 17 with Maven, Rust, Go 1.25
# and Python are there before. What cannot be had is left out; `pairs.py try` shows which pairs that costs.
set -u
mkdir -p "$1"
PAIRS=$(realpath "$1") HERE=$(realpath "$(dirname "${BASH_SOURCE[0]}")")
cd "$PAIRS" || exit 1

# No server is to start by itself.
[ -e /usr/sbin/policy-rc.d ] || { printf '#!/bin/sh\nexit 101\n' > /usr/sbin/policy-rc.d; chmod +x /usr/sbin/policy-rc.d; }
DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends apache2 apache2-utils beanstalkd bindfs \
    bzip2 caddy curl dnsperf eatmydata erlang-base etcd-server flac g++ gocryptfs gpg gpg-agent graphicsmagick haproxy \
    imagemagick lame lbzip2 libboost-dev libjxl-tools libkyotocabinet-dev libleveldb-dev libmono-system-core4.0-cil \
    libnbd-bin libopenmpi-dev libtbb-dev libtdb-dev lighttpd lighttpd-mod-deflate mafft mono-mcs mono-runtime nbdkit \
    ninja-build openmpi-bin p7zip-full parallel pbzip2 plzip povray puma r-base-core restic ripgrep rocksdb-tools \
    samtools sox squashfs-tools starman stockfish svt-av1 swi-prolog-nox unbound unicorn uwsgi-core \
    uwsgi-plugin-python3 x265 zpaq

# Some hundred files to unpack.
mkdir -p debs
(cd debs && chmod 777 . && apt-get download -q tzdata git-man python3-docutils)

python3 -m venv venv
venv/bin/pip install -q aiohttp cherrypy dask duckdb fasteners filelock grpcio h5py joblib lmdb numba numpy \
    portalocker pygments sqlalchemy uvicorn waitress

npm install --prefix npm --no-audit --no-fund bcrypt deno esbuild piscina proper-lockfile terser

mkdir -p rs jars
cp -r "$HERE/rust/." rs
cargo build --release --manifest-path rs/Cargo.toml

jars() {
    local group artifact version
    echo '<project><modelVersion>4.0.0</modelVersion>'
    echo '<groupId>pairs</groupId><artifactId>pairs</artifactId><version>0</version><dependencies>'
    while IFS=: read -r group artifact version; do
        printf '<dependency><groupId>%s</groupId><artifactId>%s</artifactId>' "$group" "$artifact"
        printf '<version>%s</version></dependency>\n' "$version"
    done
    echo '</dependencies></project>'
}
jars > jars.xml <<'J'
ch.qos.logback:logback-classic:1.4.14
com.google.guava:guava:33.0.0-jre
com.h2database:h2:2.2.224
com.zaxxer:HikariCP:5.1.0
org.apache.commons:commons-dbcp2:2.11.0
org.apache.tomcat.embed:tomcat-embed-core:10.1.19
org.hsqldb:hsqldb:2.7.2
org.slf4j:slf4j-api:2.0.9
J
mvn -q -B -f jars.xml dependency:copy-dependencies -DoutputDirectory="$PAIRS/jars"
javac -cp "jars/*" -d classes "$HERE/java/Pairs.java" && jar cf jars/pairs.jar -C classes .

mkdir -p go cpp mono
go build -C "$HERE/go" -o "$PAIRS/go/pairs" .
compile() { "$1" -O2 -o "cpp/$(basename "${2%.*}")" "$HERE/cpp/$2" "${@:3}"; }
compile g++ asio.cpp -pthread
compile g++ kyoto.cpp -lkyotocabinet -pthread
compile g++ level.cpp -lleveldb -pthread
compile g++ tbb.cpp -ltbb
compile gcc tdb.c -ltdb -lm
compile mpicc mpi.c -lm
mcs -out:mono/lock.exe "$HERE/lock.cs"
