#!/usr/bin/env bash
# Records one run of a program, with the whole machine around it, for holdup gate.
#
#   record.sh FILE COMMAND [ARGUMENT...]
#
# With CPUS=0-3 in the environment the program runs on these CPUs alone, and only they are recorded.
#
# exec: this shell becomes perf, so that $$ is perf's own number. perf writes what it records;
# without the filter each of those writes would be recorded and written again.
set -euo pipefail
file=$1
shift
where=(-a)
if [ -n "${CPUS:-}" ]; then
    where=(-C "$CPUS")
    set -- taskset -c "$CPUS" "$@"
fi
exec perf record -q "${where[@]}" -m 4M -o "$file" \
    -e sched:sched_switch,sched:sched_waking,sched:sched_wakeup,sched:sched_wakeup_new \
    -e sched:sched_process_fork,sched:sched_process_exec,sched:sched_process_exit \
    -e sched:sched_migrate_task,sched:sched_stat_runtime \
    -e raw_syscalls:sys_enter --filter "common_pid != $$" \
    -e raw_syscalls:sys_exit --filter "common_pid != $$" \
    -e lock:contention_begin,lock:contention_end \
    -e irq:irq_handler_entry,irq:irq_handler_exit,irq:softirq_entry,irq:softirq_exit \
    -- "$@"
