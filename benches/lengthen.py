#!/usr/bin/env python3
"""Make a recording longer: lengthen.py IN OUT TIMES

IN is an uncompressed trace.dat of version 7 (trace-cmd record --file-version 7 --compression none). Its pages are
repeated TIMES times, each time later by the length of the recording: a page begins with its absolute time, all
times within are relative to it. So OUT is what the same machine doing the same again and again would have left, but for the few events
that carry an absolute time of their own: they stay where they were, and readers count them as out of order.
"""
import struct
import sys


def main(src, dst, times):
    d = bytearray(open(src, "rb").read())
    assert d[10:12] == b"7\0", "not a trace.dat v7"
    pos = 18
    for _ in range(2):
        pos = d.index(b"\0", pos) + 1
    (at,) = struct.unpack_from("<Q", d, pos)
    tables = []
    while at:
        size = struct.unpack_from("<Q", d, at + 8)[0]
        pos, end, at = at + 16, at + 16 + size, 0
        while pos < end:
            number, size = struct.unpack_from("<HI", d, pos)
            pos += 6
            if number == 0:
                (at,) = struct.unpack_from("<Q", d, pos)
                break
            if number == 3:
                p = d.index(b"\0", d.index(b"\0", pos + 8) + 1) + 1
                page, cpus = struct.unpack_from("<II", d, p)
                tables += [(page, p + 8 + 20 * i) for i in range(cpus)]
            pos += size
    stamps = []
    for page, entry in tables:
        _, offset, size = struct.unpack_from("<IQQ", d, entry)
        stamps += [struct.unpack_from("<Q", d, o)[0] for o in range(offset, offset + size, page)]
    step = max(stamps) - min(stamps) + 1_000_000_000
    with open(dst, "wb") as out:
        end = (len(d) + 4095) & ~4095
        lanes = []
        for page, entry in tables:
            cpu, offset, size = struct.unpack_from("<IQQ", d, entry)
            lanes.append((page, offset, size))
            struct.pack_into("<IQQ", d, entry, cpu, end, size * times)
            end += size * times
        out.write(d.ljust((len(d) + 4095) & ~4095, b"\0"))
        for page, offset, size in lanes:
            data = bytearray(d[offset:offset + size])
            for _ in range(times):
                out.write(data)
                for o in range(0, size, page):
                    struct.pack_into("<Q", data, o, struct.unpack_from("<Q", data, o)[0] + step)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
