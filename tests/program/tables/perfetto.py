"""What Perfetto's trace processor finds in a trace, as JSON: for tests/program/tables/chrome.rs."""
import json
import shutil
import sys

from perfetto.trace_processor import TraceProcessor, TraceProcessorConfig

shell = TraceProcessorConfig(bin_path=shutil.which("trace_processor_shell"))
with TraceProcessor(trace=sys.argv[1], config=shell) as tp:
    rows = tp.query("select category as c, count(*) as n, sum(dur) as ns from slice group by category")
    found = {"slices": {r.c: [r.n, r.ns] for r in rows}}
    rows = tp.query("select name from process where name is not null")
    found["processes"] = [r.name for r in rows]
    rows = tp.query("select name, value from stats where severity in ('error', 'data_loss') and value > 0")
    found["errors"] = {r.name: r.value for r in rows}
json.dump(found, sys.stdout)
