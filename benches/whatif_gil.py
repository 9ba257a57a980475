"""Work in Python, shared among threads, which take turns at the interpreter, or among processes.

    whatif_gil.py workers=N kind=threads|processes dur=MS

Prints JSON as the workload wl does. One unit of work is a sum over a list, some hundred microseconds.
"""
import json
import multiprocessing
import sys
import threading
import time

GIVEN = {"workers": "2", "kind": "threads", "dur": "500"} | dict(word.split("=") for word in sys.argv[1:] if "=" in word)


def work(done, me, until):
    numbers = list(range(2000))
    while time.monotonic() < until:
        total = 0
        for n in numbers:
            total += n * n % 7
        done[me] += 1


def main():
    workers, until = int(GIVEN["workers"]), time.monotonic() + int(GIVEN["dur"]) / 1000
    processes = GIVEN["kind"] == "processes"
    done = multiprocessing.Array("l", workers, lock=False) if processes else [0] * workers
    # Forked, so that no start-up of an interpreter is measured.
    start = multiprocessing.get_context("fork").Process if processes else threading.Thread
    begin = time.monotonic()
    all_of_them = [start(target=work, args=(done, me, until)) for me in range(workers)]
    for one in all_of_them:
        one.start()
    for one in all_of_them:
        one.join()
    print(json.dumps({"ops": sum(done), "wall_us": int((time.monotonic() - begin) * 1e6)}))


main()
