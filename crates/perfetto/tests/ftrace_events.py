"""Writes src/ftrace_events.txt from the descriptors in the Python package `perfetto`.

    pip install perfetto==0.59.1 && python3 tests/ftrace_events.py > src/ftrace_events.txt
"""
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as schema

# The fields of these are of use; of the others only number and name.
FAMILIES = ("sched_", "task_", "sys_", "irq_handler_", "softirq_", "workqueue_", "cpu_idle", "local_timer_",
            "cgroup_attach_task")

print("# Events of FtraceEvent: field number, name, and the fields of those that may be understood.")
print("# Written by tests/ftrace_events.py.")
message = schema.DESCRIPTOR.message_types_by_name["FtraceEvent"]
for event in sorted(message.fields, key=lambda f: f.number):
    if event.message_type:
        fields = event.message_type.fields if event.name.startswith(FAMILIES) else []
        print(event.number, event.name, *(f"{f.name}={f.number}" for f in fields))
