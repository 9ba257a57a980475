"""What pyarrow and DuckDB find in the files of a folder, as JSON: for tests/program/tables/others.rs."""
import glob
import json
import os
import sys

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc
import pyarrow.parquet as pq


def total(values):
    return str(sum(v for v in values.to_pylist() if v is not None))


found = {}
for path in sorted(glob.glob(os.path.join(sys.argv[1], "*"))):
    name, kind = os.path.basename(path).rsplit(".", 1)
    if kind == "parquet":
        file = pq.ParquetFile(path)
        table, metadata = file.read(), file.metadata.metadata
    else:
        table = pa.ipc.open_file(path).read_all()
        metadata = table.schema.metadata
    integer = [pa.types.is_integer(c.type) for c in table.schema]
    one = {
        "rows": table.num_rows,
        "columns": table.schema.names,
        "types": [str(c.type) for c in table.schema],
        "nulls": [table[c].null_count for c in table.schema.names],
        "sums": [total(table[c]) if i else None for c, i in zip(table.schema.names, integer)],
        "metadata": {k.decode(): v.decode() for k, v in metadata.items()},
    }
    if kind == "parquet":
        columns = ", ".join(
            f'count(*) - count("{c}")' + (f', cast(coalesce(sum("{c}"), 0) as varchar)' if i else ", null")
            for c, i in zip(table.schema.names, integer)
        )
        row = duckdb.sql(f"select {columns} from read_parquet('{path}')").fetchall()[0]
        one["duckdb_nulls"], one["duckdb_sums"] = list(row[::2]), list(row[1::2])
    found[name] = one
json.dump(found, sys.stdout)
