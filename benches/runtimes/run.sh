#!/bin/bash
# run.sh NAME: one of the programs below, in a folder of its own (TMPDIR says where); prints how much it did, and that a
# second. RUNTIMES is the folder that build.sh filled.
bin=${RUNTIMES:?}
cd "$(mktemp -d)" || exit 1
trap 'rm -rf "$PWD"' EXIT

# served PORT COMMAND...: it serves there until the end.
served() {
    local port=$1
    shift
    "$@" > server.log 2>&1 &
    trap 'kill '$!'; wait '$!' 2> /dev/null; rm -rf "$PWD"' EXIT
    for _ in $(seq 200); do (: < "/dev/tcp/127.0.0.1/$port") 2> /dev/null && break; sleep 0.05; done
}

case $1 in
    # Mutexes that are free; goroutines that take turns on one thread.
    free) echo $((100000000 * $(nproc))) $("$bin/free") ;;
    turns) echo 100000 $("$bin/turns") ;;
    # Eight publishers, each message on disk before the next.
    nats)
        printf 'port: 14222\njetstream { store_dir: "%s/store", sync_interval: always }\n%s\n' "$PWD" "$MORE" > server.conf
        served 14222 "$bin/nats-server" -c server.conf
        : "${N:=20000}"
        "$bin/nats" -s nats://127.0.0.1:14222 bench orders --js --pub 8 --syncpub --storage=file --msgs "$N" \
            --size 200 --no-progress 2>&1 | sed -n 's/.*stats: \([0-9,]*\) msgs.*/'"$N"' \1/p' ;;
    # Eight publishers and a subscriber of one subject, in memory.
    fan)
        printf 'port: 14222\n%s\n' "$MORE" > server.conf
        served 14222 "$bin/nats-server" -c server.conf
        : "${N:=1500000}"
        "$bin/nats" -s nats://127.0.0.1:14222 bench news --pub 8 --sub 1 --msgs "$N" --size 16 --no-progress 2>&1 |
            sed -n 's/.*Pub.*stats: \([0-9,]*\) msgs.*/'"$N"' \1/p' | tail -1 ;;
    # 32 clients that put keys.
    etcd)
        url=http://127.0.0.1
        served 12379 "$bin/etcd" --data-dir data --listen-client-urls $url:12379 --advertise-client-urls $url:12379 \
            --listen-peer-urls $url:12380 $MORE
        echo $((32 * ${N:=600})) $("$bin/puts" 127.0.0.1:12379 32 "$N") ;;
    # Eight writers of batches that are synced.
    pebble)
        "$bin/pebble" bench sync -c 8 -d "${N:-3}s" db $MORE > log
        awk '/ops.sec.cum/ {getline; print $2, $3}' log ;;
    # Six clients of a database server in Java that insert rows, each on disk before the next.
    hsqldb)
        java="${JAVA:-java} -XX:+UseSerialGC -XX:TieredStopAtLevel=1 $MORE -cp $bin/hsqldb-2.7.2.jar:$bin"
        served 19001 $java org.hsqldb.server.Server --database.0 "file:$PWD/db" --dbname.0 x --port 19001
        echo $((6 * ${N:=800})) $($java Load jdbc:hsqldb:hsql://127.0.0.1:19001/x 6 "$N") ;;
esac
