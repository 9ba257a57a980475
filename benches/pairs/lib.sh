# What the commands of pairs.tsv share. PAIRS is the folder of the measurement: venv, rs, jars, npm, go, cpp and mono
# are in it. Python keeps what it compiles out of the folder of the sources.
export PYTHONDONTWRITEBYTECODE=1
PATH=/usr/sbin:/usr/games:/usr/lib/go/bin:$PATH
HERE=$(dirname "${BASH_SOURCE[0]}")
rs() { "$PAIRS/rs/target/release/pairs" "$@"; }
py() { "$PAIRS/venv/bin/python" "$HERE/python.py" "$@"; }
jv() { java -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -cp "$PAIRS/jars/*" Pairs "$@"; }
js() { NODE_PATH=$PAIRS/npm/node_modules node "$HERE/node.js" "$@"; }
gopairs() { "$PAIRS/go/pairs" "$@"; }
cx() { "$PAIRS/cpp/$1" "${@:2}"; }

# text MEGABYTES FILE: words, the same each time.
text() {
    [ -s "$2" ] || python3 -c "
import random, sys
chance = random.Random(1)
words = [''.join(chance.choices('etaoinshrdlu', k=chance.randint(2, 9))) for _ in range(5000)]
size = int(sys.argv[1]) << 20
with open(sys.argv[2], 'w') as file:
    while file.tell() < size:
        file.write(''.join(' '.join(chance.choices(words, k=8)) + '\n' for _ in range(5000)))
" "$1" "$2"
}

# quota PERCENT COMMAND...: in a control group with so much of one CPU. The command may be a function, and what that has
# started may outlive it a little.
quota() {
    local group=/sys/fs/cgroup/cpu/pairs.$$ code percent=$1
    shift
    mkdir -p "$group"
    echo 100000 > "$group/cpu.cfs_period_us"
    echo $((percent * 1000)) > "$group/cpu.cfs_quota_us"
    (echo $BASHPID > "$group/cgroup.procs"; [ "$(type -t "$1")" = function ] || exec "$@"; "$@")
    code=$?
    rmdir "$group" 2> /dev/null || { sleep 0.1; rmdir "$group"; }
    return $code
}

# served SERVER PORT CLIENT: the client's exit code once the server listens; the server is ended.
served() {
    setsid bash -c "exec $1" > server.log 2>&1 &
    local server=$! code
    for _ in $(seq 100); do (: < "/dev/tcp/127.0.0.1/$2") 2> /dev/null && break; sleep 0.02; done
    eval "$3"
    code=$?
    # With the workers that it has forked.
    kill -- -$server
    wait $server 2> /dev/null
    return $code
}

ninja_files() {
    cat > a.c <<'C'
#include <stdio.h>
#include <stdlib.h>
#define A(n) int f##n(int x) { int s = 0; for (int i = 0; i < x; i++) for (int j = i; j < x; j++) s += i * j % (n + 1); return s; }
#define B(n) A(n##0) A(n##1) A(n##2) A(n##3) A(n##4) A(n##5) A(n##6) A(n##7) A(n##8) A(n##9)
B(1) B(2) B(3) B(4)
C
    for kind in one all; do
        { [ $kind = one ] && printf 'pool one\n  depth = 1\n'
          printf 'rule cc\n  command = gcc -O2 -c a.c -o $out\n'
          [ $kind = one ] && printf '  pool = one\n'
          for i in $(seq 6); do printf 'build %s%s.o: cc a.c\n' $kind "$i"; done; } > $kind.ninja
    done
}

esb() { "$PAIRS/npm/node_modules/.bin/esbuild" in/*.js --minify --outdir=out --log-level=error; }

haproxy_files() {
    text 1 page
    head -c 15000 page > body
    for n in 1 2; do
        cat > $n.cfg <<C
global
 nbthread $n
defaults
 mode http
 timeout client 9s
 timeout connect 9s
 timeout server 9s
 compression algo gzip
 compression type text/plain
frontend pages
 bind 127.0.0.1:8090
 http-request return status 200 content-type text/plain file $PWD/body
frontend front
 bind 127.0.0.1:8091
 default_backend pages
backend pages
 server pages 127.0.0.1:8090
C
    done
}

apache_files() {
    text 1 page.txt
    for n in 1 2; do
        cat > $n.conf <<C
ServerName pairs
Listen 127.0.0.1:8092
PidFile $PWD/pid
ErrorLog $PWD/error.log
DocumentRoot $PWD
User www-data
Group www-data
LoadModule mpm_event_module /usr/lib/apache2/modules/mod_mpm_event.so
LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
LoadModule filter_module /usr/lib/apache2/modules/mod_filter.so
LoadModule deflate_module /usr/lib/apache2/modules/mod_deflate.so
LoadModule mime_module /usr/lib/apache2/modules/mod_mime.so
TypesConfig /etc/mime.types
ServerLimit 1
StartServers 1
ThreadsPerChild $n
ThreadLimit $n
MaxRequestWorkers $n
AddOutputFilterByType DEFLATE text/plain
C
    done
}

unbound_files() {
    for n in $(seq 1000); do echo "host$n.pairs. A"; done > names
    for n in 1 2; do
        { printf 'server:\n num-threads: %s\n so-reuseport: yes\n interface: 127.0.0.1\n port: 8093\n' $n
          printf ' do-daemonize: no\n username: ""\n chroot: ""\n directory: "%s"\n pidfile: ""\n use-syslog: no\n' "$PWD"
          printf ' local-zone: "pairs." static\n'
          for i in $(seq 1000); do echo " local-data: \"host$i.pairs. A 10.0.0.1\""; done
          printf 'remote-control:\n control-enable: no\n'; } > $n.conf
    done
}

# through_fuse OPTION...: four readers of files behind bindfs.
through_fuse() {
    bindfs "$@" src mnt &
    local server=$!
    while ! mountpoint -q mnt; do sleep 0.02; done
    for i in 0 1 2 3; do (for n in 1 2 3; do cat mnt/$i > /dev/null; done) & done
    wait $(jobs -p | grep -v "^$server$")
    umount mnt
    wait $server
}

# erl_work SCHEDULERS; erl_server SERVERS: four processes that compute, or that ask.
erl_work() {
    erl +S "$1:$1" -noshell -eval '
        Loop = fun Loop(0, X) -> X; Loop(N, X) -> Loop(N - 1, (X * 1103515245 + 12345) band 16#7fffffff) end,
        Me = self(), [spawn(fun() -> Loop(140000, I), Me ! ok end) || I <- lists:seq(1, 4)],
        [receive ok -> ok end || _ <- lists:seq(1, 4)], halt().'
}
erl_server() {
    erl +S 2:2 -noshell -eval '
        Loop = fun Loop(0, X) -> X; Loop(N, X) -> Loop(N - 1, (X * 1103515245 + 12345) band 16#7fffffff) end,
        Serve = fun Serve() -> receive {From, N} -> From ! Loop(300, N), Serve() end end,
        Servers = [spawn(Serve) || _ <- lists:seq(1, '"$1"')],
        Me = self(), Ask = fun Ask(_, 0) -> Me ! ok; Ask(S, N) -> S ! {self(), N}, receive _ -> ok end, Ask(S, N - 1) end,
        [spawn(fun() -> Ask(lists:nth(1 + I rem length(Servers), Servers), 500) end) || I <- lists:seq(1, 4)],
        [receive ok -> ok end || _ <- lists:seq(1, 4)], halt().'
}

dbb() { rm -rf db; db_bench --db=db --benchmarks=fillrandom --num=1500 --threads=4 "$@" > db.log 2>&1; }

# unpack [eatmydata]: packages into a root of their own.
unpack() {
    rm -rf root
    mkdir -p root/var/lib/dpkg/updates root/var/lib/dpkg/info
    touch root/var/lib/dpkg/status
    "${@:-env}" dpkg --root="$PWD/root" --force-all --unpack "$PAIRS"/debs/*.deb > dpkg.log 2>&1
}

# cold FILE...: not in memory any more.
cold() { for file in "$@"; do [ -f "$file" ] && dd if="$file" iflag=nocache count=0 status=none; done; true; }

film() { [ -s film.yuv ] || python3 -c "
import random
chance, frame = random.Random(2), bytearray(640 * 360 * 3 // 2)
with open('film.yuv', 'wb') as file:
    for n in range(10):
        for _ in range(300):
            at = chance.randrange(len(frame) - 4000); frame[at:at + 3000] = bytes([chance.randrange(256)]) * 3000
        file.write(frame)
"; }
x265_of() { x265 --input film.yuv --input-res 640x360 --fps 25 --preset veryfast "$@" -o out.hevc > x265.log 2>&1; }

# yuv: the film three times, for encoders that want a header.
yuv() {
    [ -s film.y4m ] && return
    film
    python3 -c "
film, size = open('film.yuv', 'rb').read(), 640 * 360 * 3 // 2
with open('film.y4m', 'wb') as file:
    file.write(b'YUV4MPEG2 W640 H360 F25:1 Ip A1:1 C420jpeg\n')
    for _ in range(3):
        for at in range(0, len(film), size):
            file.write(b'FRAME\n' + film[at:at + size])
"
}

# noise FILE SECONDS: a tone that rises, with noise.
noise() { [ -s "$1" ] || sox -n -r 44100 -c 2 "$1" synth "$2" sine 200:4000 synth "$2" pinknoise mix; }

picture() { [ -s "$1" ] || convert -size 1600x1200 -seed 3 plasma: -depth 8 "$1"; }

scene() {
    cat > s.pov <<'P'
camera { location <0,3,-9> look_at <0,1,0> }
light_source { <5,9,-7> color rgb 1 area_light <2,0,0>, <0,0,2>, 5, 5 }
plane { y, 0 pigment { checker color rgb 1 color rgb 0.2 } finish { reflection 0.3 } }
#declare I = 0;
#while (I < 25)
sphere {
    <mod(I,5)*1.5-3, 1, int(I/5)*1.5-2>, 0.7
    pigment { color rgb <1,0.3,0.1> } finish { reflection 0.4 specular 0.6 }
}
#declare I = I + 1;
#end
P
}
pov() { povray +Is.pov -D -GA +FN +Os.png +A0.1 "$@" > pov.log 2>&1; }

# sam: aligned reads, the same each time.
sam() {
    [ -s in.sam ] || python3 -c "
import random
chance = random.Random(4)
with open('in.sam', 'w') as file:
    file.write('@SQ\tSN:c1\tLN:10000000\n')
    for i in range(250000):
        at = chance.randrange(1, 9999000)
        bases, marks = (''.join(chance.choices(of, k=100)) for of in ('ACGT', 'FGHIJ'))
        file.write(f'r{i}\t0\tc1\t{at}\t60\t100M\t*\t0\t0\t{bases}\t{marks}\n')
"
}

# fasta COUNT: proteins that are alike.
fasta() {
    [ -s in.fa ] || python3 -c "
import random, sys
chance, acids = random.Random(5), 'ACDEFGHIKLMNPQRSTVWY'
base = chance.choices(acids, k=300)
with open('in.fa', 'w') as file:
    for i in range(int(sys.argv[1])):
        protein = ''.join(chance.choice(acids) if chance.random() < 0.3 else acid for acid in base)
        file.write(f'>s{i}\n{protein}\n')
" "$1"
}

# gocryptfs_files; gocryptfs_run CPUS: four readers of files that a server decrypts.
gocryptfs_files() {
    mkdir -p enc mnt
    umount mnt 2> /dev/null
    [ -e enc/gocryptfs.conf ] && return
    echo pass > pw
    gocryptfs -q -init -scryptn 10 -passfile pw enc
    gocryptfs -q -passfile pw enc mnt
    for i in 0 1 2 3; do head -c 90000000 /dev/urandom > mnt/$i; done
    umount mnt
}
gocryptfs_run() {
    GOMAXPROCS=$1 gocryptfs -q -fg -passfile pw enc mnt &
    local server=$! readers=()
    while ! mountpoint -q mnt; do sleep 0.02; done
    for i in 0 1 2 3; do (for n in {1..6}; do cat mnt/$i > /dev/null; done) & readers+=($!); done
    wait "${readers[@]}"
    umount mnt
    wait $server
}

lighttpd_files() {
    text 1 page.txt
    # No worker is one process, which serves.
    for n in 1 2; do
        cat > $n.conf <<C
server.modules = ("mod_deflate")
server.document-root = "$PWD"
server.port = 8302
server.bind = "127.0.0.1"
server.max-worker = $((n == 1 ? 0 : n))
mimetype.assign = (".txt" => "text/plain")
deflate.mimetypes = ("text/plain")
deflate.allowed-encodings = ("gzip")
C
    done
}

caddy_files() {
    text 1 page.txt
    cat > Caddyfile <<C
{
 admin off
 auto_https off
}
:8303 {
 root * $PWD
 encode gzip
 file_server
}
C
}

# rack; psgi: pages that take a while to compute, and one that sleeps.
rack() {
    cat > sleep.ru <<'R'
run lambda { |env|
  sleep 0.004
  s = 0
  3000.times { |i| s += i }
  [200, {'Content-Type' => 'text/plain'}, [s.to_s]]
}
R
    cat > work.ru <<'R'
run lambda { |env|
  s = 0
  40000.times { |i| s += i * i % 7 }
  [200, {'Content-Type' => 'text/plain'}, [s.to_s]]
}
R
    for n in 1 2; do printf 'worker_processes %s\nlisten "127.0.0.1:8306"\n' $n > u$n.rb; done
}
psgi() {
    cat > a.psgi <<'P'
sub { my $s = 0; $s += $_ * $_ % 7 for 1..40000; [200, ['Content-Type' => 'text/plain'], ["$s\n"]] }
P
}
# uwsgi_of PROCESSES [REQUESTS]
uwsgi_of() {
    local app="--plugin python3 --pythonpath $HERE --module asgi:wsgi" how="--master --disable-logging --die-on-term"
    served "uwsgi $app $how --http-socket 127.0.0.1:8324 --processes $1" 8324 "ask 8324 ${2:-1200} 4"
}

# ask PORT REQUESTS CLIENTS: all are answered well. idle PORT: a request now and then.
ask() {
    ab -q -n "$2" -c "$3" "http://127.0.0.1:$1/" > ab.log 2>&1 && ! grep -q 'Failed requests: *[1-9]\|Non-2xx' ab.log
}
idle() { for n in {1..30}; do sleep 0.08; curl -s -o /dev/null "http://127.0.0.1:$1/"; done; }

# What these use in /dev/shm, and the loop devices, stay for the next run.
# dd_write one|own: three copies at once into one file in memory, or into files of their own.
dd_write() {
    local copies=() file
    for i in 1 2 3; do
        file=/dev/shm/pairs-dd$([ "$1" = own ] && echo $i)
        (for n in {1..16}; do dd if=/dev/zero of="$file" bs=4M count=50 conv=notrunc status=none; done) & copies+=($!)
    done
    wait "${copies[@]}"
}

# loops; dd_loop one|own: four readers of one loop device, or of two of the same file in memory.
loops() {
    local image=/dev/shm/pairs-loop
    [ -s $image ] || dd if=/dev/zero of=$image bs=1M count=400 status=none
    while [ "$(losetup -j $image | wc -l)" -lt 2 ]; do losetup -f $image || return; done
}
dd_loop() {
    local readers=() all
    mapfile -t all < <(losetup -n -O NAME -j /dev/shm/pairs-loop)
    [ "$1" = one ] && all[1]=${all[0]}
    for i in 0 1 0 1; do
        (for n in {1..10}; do dd if="${all[i]}" of=/dev/null bs=1M iflag=direct status=none; done) & readers+=($!)
    done
    wait "${readers[@]}"
}
