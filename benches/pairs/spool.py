"""Three processes move files between the folders of a spool in memory: `spool.py one` has one spool, `own` one each."""
import multiprocessing
import os
import sys


def move(spool):
    new, cur = (f"{spool}/{folder}/{os.getpid()}" for folder in ("new", "cur"))
    for path in (new, cur):
        os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(new, "w", encoding="utf-8"):
        pass
    for _ in range(140000):
        os.rename(new, cur)
        os.rename(cur, new)
    os.unlink(new)


if __name__ == "__main__":
    spools = ["/dev/shm/pairs-spool" + (str(i) if sys.argv[1] == "own" else "") for i in range(3)]
    movers = [multiprocessing.Process(target=move, args=(spool,)) for spool in spools]
    for mover in movers:
        mover.start()
    for mover in movers:
        mover.join()
