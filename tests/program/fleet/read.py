"""What pyarrow and DuckDB find in the tables of a fleet, as JSON: for tests/program/fleet/others.rs."""
import json
import os
import sys

import duckdb
import pyarrow.dataset as ds

folder = sys.argv[1]
found = {}
for name in sorted(os.listdir(folder)):
    path = os.path.join(folder, name)
    table = ds.dataset(path, partitioning="hive")
    files = f"read_parquet('{path}/**/*.parquet', hive_partitioning = true)"
    duckdb.sql(f"create view {name} as select * from {files}")
    found[name] = {
        "columns": [column[0] for column in duckdb.sql(f"describe {name}").fetchall()],
        "pyarrow": table.count_rows(),
        "duckdb": duckdb.sql(f"select count(*) from {name}").fetchall()[0][0],
    }
others = " union all ".join(f"select trace from {name}" for name in found)
found["strays"] = duckdb.sql(
    f"select count(*) from ({others}) where trace not in (select trace from trace)"
).fetchall()[0][0]
found["worst_sum_pct"] = duckdb.sql(
    "select max(abs(100 - coalesce(pct_busy, 0) - coalesce(pct_idle, 0) - coalesce(pct_unaccounted, 0)))"
    " from trace"
).fetchall()[0][0]
# The examples of the document.
os.chdir(os.path.dirname(os.path.dirname(folder)))
with open(sys.argv[2]) as document:
    examples = document.read().split("```sql\n")[1].split("```")[0]
found["examples"] = []
for statement in filter(str.strip, examples.split(";")):
    if "CREATE VIEW" in statement:
        duckdb.sql(statement)
    else:
        found["examples"].append(len(duckdb.sql(statement).fetchall()))
rows = duckdb.sql("select path, verdict, host from trace").fetchall()
found["verdicts"] = sorted(" ".join(json.dumps(word) for word in row) for row in rows)
json.dump(found, sys.stdout)
