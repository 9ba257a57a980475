# Sourced by the other scripts: the peaks of a process's memory, by polling.

# peak PID SECONDS: waits for a child of this shell to end, and prints the peaks of its anonymous and of
# all its resident memory in KiB. What it grew by in its last SECONDS may be missing. Fails as the child does.
peak() {
    local pid=$1 pause=$2 anon=0 all=0 key value status=0
    while kill -0 "$pid" 2>/dev/null; do
        while read -r key value _; do
            case $key in
            VmHWM:) all=$((value > all ? value : all)) ;;
            RssAnon:) anon=$((value > anon ? value : anon)) ;;
            esac
        done 2>/dev/null <"/proc/$pid/status" || true
        sleep "$pause"
    done
    wait "$pid" || status=$?
    echo "$anon $all"
    return "$status"
}
