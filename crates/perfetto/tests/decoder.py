"""Prints every ftrace event of a Perfetto trace, read by Perfetto's own Python package.

    pip install perfetto && python3 decoder.py TRACE

A line is time, CPU, thread, name, and the fields of the events that are compared. Lists of switches
are spelled out: who leaves is who came before.
"""
import sys
import zlib

from google.protobuf import descriptor_pb2, empty_pb2, unknown_fields
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

WAKE = ("comm", "pid", "prio", "target_cpu")
FIELDS = {
    "sched_switch": ("prev_comm", "prev_pid", "prev_prio", "prev_state", "next_comm", "next_pid", "next_prio"),
    "sched_waking": WAKE,
    "sched_wakeup": WAKE,
    "sched_wakeup_new": WAKE,
    "sched_migrate_task": ("pid", "orig_cpu", "dest_cpu"),
    "sched_process_fork": ("parent_pid", "child_comm", "child_pid"),
    "sched_process_exec": ("filename", "pid", "old_pid"),
    "sched_process_exit": ("comm", "pid"),
    "sys_enter": ("id", "args"),
    "sys_exit": ("id", "ret"),
    "irq_handler_entry": ("irq", "name"),
    "irq_handler_exit": ("irq",),
    "softirq_entry": ("vec",),
    "softirq_exit": ("vec",),
    "softirq_raise": ("vec",),
    "workqueue_queue_work": ("work", "function"),
    "workqueue_execute_start": ("work", "function"),
    "workqueue_execute_end": ("work",),
    "cpu_idle": ("state", "cpu_id"),
    "contention_begin": ("lock_addr", "flags"),
    "contention_end": ("lock_addr", "ret"),
}


def letters(state):
    """As Linux 4.14 and later print it."""
    low = state & 0xFF
    if low == 0:
        return "R+" if state else "R"
    return "|".join(c for i, c in enumerate("SDTtXZPI") if low >> i & 1)


def packets(data):
    trace = schema.Trace()
    trace.ParseFromString(data)
    for packet in trace.packet:
        if packet.HasField("compressed_packets"):
            yield from packets(zlib.decompress(packet.compressed_packets))
        else:
            yield packet


def text(name, values):
    wanted = FIELDS.get(name, ())
    values = [(k, letters(values[k]) if k == "prev_state" else values[k]) for k in wanted]
    return " ".join([name, *(f"{k}={v}" for k, v in values)])


def main():
    rows, described, running = [], {}, {}
    everything = packets(open(sys.argv[1], "rb").read())
    bundles = [p.ftrace_events for p in everything if p.HasField("ftrace_events")]
    for d in (d for bundle in bundles for d in bundle.generic_event_descriptors):
        message = descriptor_pb2.DescriptorProto.FromString(d.event_descriptor)
        described[d.field_id] = (message.name, {f.number: f.name for f in message.field})
    for bundle in bundles:
        if bundle.lost_events:
            running.pop(bundle.cpu, None)
        mixed = []
        compact = bundle.compact_sched
        comms, now = compact.intern_table, 0
        for delta, *row in zip(compact.switch_timestamp, compact.switch_prev_state, compact.switch_next_pid,
                               compact.switch_next_prio, compact.switch_next_comm_index):
            now += delta
            mixed.append((now, 0, row))
        now = 0
        for delta, *row in zip(compact.waking_timestamp, compact.waking_pid, compact.waking_target_cpu,
                               compact.waking_prio, compact.waking_comm_index):
            now += delta
            mixed.append((now, 1, row))
        mixed += [(event.timestamp, 2, event) for event in bundle.event]
        mixed.sort(key=lambda m: m[:2])
        for time, kind, what in mixed:
            pid, comm, prio = running.get(bundle.cpu, (-1, "", 0))
            if kind == 0:
                state, next_pid, next_prio, index = what
                running[bundle.cpu] = (next_pid, comms[index], next_prio)
                line = text("sched_switch", {
                    "prev_comm": comm, "prev_pid": pid, "prev_prio": prio, "prev_state": state,
                    "next_comm": comms[index], "next_pid": next_pid, "next_prio": next_prio})
            elif kind == 1:
                woken, cpu, woken_prio, index = what
                line = text("sched_waking", {
                    "comm": comms[index], "pid": woken, "prio": woken_prio, "target_cpu": cpu})
            else:
                name, line = plain(what, described)
                if name == "sched_switch":
                    s = what.sched_switch
                    running[bundle.cpu] = (s.next_pid, s.next_comm, s.next_prio)
                elif what.pid != pid:
                    running[bundle.cpu] = (what.pid, "", 0)
                pid = what.pid
            rows.append((time, bundle.cpu, f"{time} {bundle.cpu} {pid} {line}"))
    rows.sort(key=lambda row: row[:2])
    for row in rows:
        print(row[2])


def plain(event, described):
    name = event.WhichOneof("event")
    if name is None:
        field = next(f for f in unknown_fields.UnknownFieldSet(event))
        name, fields = described[field.field_number]
        inside = unknown_fields.UnknownFieldSet(empty_pb2.Empty.FromString(field.data))
        values = {fields[f.field_number]: f.data for f in inside}
    elif name == "generic":
        name = event.generic.event_name
        values = {f.name: getattr(f, f.WhichOneof("value")) for f in event.generic.field}
    else:
        message = getattr(event, name)
        values = {f.name: getattr(message, f.name) for f in message.DESCRIPTOR.fields}
        if "args" in values:
            values["args"] = list(values["args"])
    return name, text(name, values)


main()
