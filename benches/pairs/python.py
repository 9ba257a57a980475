"""Held-up programs and their mended twins around Python packages: `python.py NAME VARIANT`, a fixed amount of work."""
import multiprocessing
import os
import shutil
import sys
import threading
import time
import urllib.request


def spin(rounds):
    x = 1
    for _ in range(rounds * 20):
        x = (x * 1103515245 + 12345) & 0x7FFFFFFF
    return x


def sums(rounds):
    s = 0
    for i in range(rounds):
        s += i * i % 7
    return s


def each(kind, count, work):
    runners = [kind(target=work, args=(i,)) for i in range(count)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()


def fresh(path):
    shutil.rmtree(path, ignore_errors=True)
    return path


def with_lmdb(how):
    """Two processes write to one environment, or to their own."""
    import lmdb

    fresh("lmdb0"), fresh("lmdb1")

    def work(i):
        env = lmdb.open("lmdb0" if how == "one" else f"lmdb{i}", map_size=1 << 28, sync=False, metasync=False)
        for n in range(8000):
            with env.begin(write=True) as txn:
                txn.put(b"%d-%d" % (i, n), b"%d" % spin(25))
            spin(3)

    each(multiprocessing.Process, 2, work)


def with_h5py(how):
    """All calls of h5py in a process go through one lock, decompression too."""
    import h5py
    import numpy

    if not os.path.exists("data.h5"):
        with h5py.File("data.h5", "w") as file:
            values = numpy.random.default_rng(1).integers(0, 99, (4000, 2500), dtype="i4")
            file.create_dataset("d", data=values, chunks=(100, 2500), compression="gzip")

    def work(i):
        with h5py.File("data.h5", "r") as file:
            for start in range(i * 2000, i * 2000 + 2000, 100):
                file["d"][start:start + 100].sum()
            for start in range(i * 2000, i * 2000 + 2000, 100):
                file["d"][start:start + 100].sum()

    each(threading.Thread if how == "threads" else multiprocessing.Process, 2, work)


def with_dask(how):
    import dask
    import dask.bag

    dask.bag.from_sequence(range(800), npartitions=8).map(lambda n: spin(1500)).sum().compute(scheduler=how, num_workers=2)


def with_joblib(how):
    from joblib import Parallel, delayed

    backend, jobs = how.split("-")
    Parallel(n_jobs=int(jobs), backend=backend)(delayed(spin)(1500) for _ in range(800))


def with_duckdb(how):
    import duckdb

    db = duckdb.connect(config={"threads": int(how)})
    db.execute("create table t as select range k, hash(range) % 50000 v from range(1000000)")
    for _ in range(14):
        db.execute("select v, count(*), stddev(k), median(k) from t group by v").fetchall()


def with_numpy(how):
    """Large arrays come and go in two threads, or in two processes."""
    import numpy

    def work(_):
        a = numpy.ones(4_000_000)
        for _ in range(25):
            b = a + 1.0
            c = b * a
            del b, c

    each(threading.Thread if how == "threads" else multiprocessing.Process, 2, work)


def with_filelock(how):
    """Two builds share a cache whose lock is asked for again every 50 ms."""
    from filelock import FileLock

    def work(i):
        lock = FileLock("cache.lock" if how == "one" else f"cache{i}.lock")
        for _ in range(300):
            with lock:
                spin(900)
            spin(100)

    each(multiprocessing.Process, 2, work)


def with_fasteners(how):
    """The same with a lock that the kernel hands on."""
    import fasteners

    def work(i):
        lock = fasteners.InterProcessLock("p.lock" if how == "one" else f"p{i}.lock")
        for _ in range(300):
            with lock:
                spin(900)
            spin(100)

    each(multiprocessing.Process, 2, work)


def with_grpc(how):
    """Each request waits 3 ms for somebody else."""
    from concurrent import futures

    import grpc

    def echo(request, _):
        time.sleep(0.003)
        return request

    same = dict(request_deserializer=None, response_serializer=None)
    handlers = {"Echo": grpc.unary_unary_rpc_method_handler(echo, **same)}
    server = grpc.server(futures.ThreadPoolExecutor(int(how)))
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("pairs", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()

    def work(_):
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            call = channel.unary_unary("/pairs/Echo")
            for _ in range(100):
                call(b"x")

    each(threading.Thread, 4, work)
    server.stop(0)


def with_waitress(how):
    """A thread of the server, or four, of which each waits 4 ms for a database."""
    import waitress.server

    def app(_, start):
        time.sleep(0.004)
        start("200 OK", [("Content-Length", "2")])
        return [b"ok"]

    server = waitress.server.create_server(app, host="127.0.0.1", port=0, threads=int(how))
    threading.Thread(target=server.run, daemon=True).start()

    def work(_):
        for _ in range(80):
            urllib.request.urlopen(f"http://127.0.0.1:{server.effective_port}/").read()

    each(threading.Thread, 4, work)
    os._exit(0)


def serve_aiohttp(_):
    from aiohttp import web

    async def handle(_):
        return web.Response(text=str(spin(600)))

    app = web.Application()
    app.router.add_get("/", handle)
    web.run_app(app, host="127.0.0.1", port=8089, reuse_port=True, print=None, access_log=None)


def with_aiohttp(how):
    """One process serves, or two at one port."""
    servers = [multiprocessing.Process(target=serve_aiohttp, args=(i,), daemon=True) for i in range(int(how))]
    for server in servers:
        server.start()
    time.sleep(0.8)

    def work(_):
        for _ in range(250):
            urllib.request.urlopen("http://127.0.0.1:8089/").read()

    each(multiprocessing.Process, 4, work)
    for server in servers:
        server.kill()


def coloured(_):
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    with open(os.__file__, encoding="utf-8") as file:
        return len(highlight(file.read(), PythonLexer(), HtmlFormatter()))


def with_pygments(how):
    """Two threads of one interpreter, or two processes."""
    from concurrent import futures

    coloured(0)
    pool = futures.ThreadPoolExecutor if how == "threads" else futures.ProcessPoolExecutor
    with pool(2) as workers:
        list(workers.map(coloured, range(24)))


def with_sqlalchemy(how):
    """Four threads share so many connections; each query takes 3 ms elsewhere."""
    import sqlalchemy
    from sqlalchemy.pool import QueuePool

    same = dict(max_overflow=0, connect_args={"check_same_thread": False})
    engine = sqlalchemy.create_engine("sqlite://", poolclass=QueuePool, pool_size=int(how), **same)

    @sqlalchemy.event.listens_for(engine, "connect")
    def _(connection, _):
        connection.create_function("far", 0, lambda: time.sleep(0.003) or 1)

    def work(_):
        for _ in range(150):
            with engine.connect() as connection:
                connection.execute(sqlalchemy.text("select far()")).scalar()

    each(threading.Thread, 4, work)


def with_cherrypy(how):
    """A server with so many threads, of which each waits 5 ms for a database."""
    import cherrypy

    class Root:
        @cherrypy.expose
        def index(self):
            time.sleep(0.005)
            return "ok"

    cherrypy.config.update({
        "environment": "production", "engine.autoreload.on": False, "log.screen": False,
        "server.socket_host": "127.0.0.1", "server.socket_port": 8322, "server.thread_pool": int(how),
    })
    cherrypy.quickstart(Root())


def with_portalocker(how):
    """Three processes compute under the lock of one file, or of their own."""
    import portalocker

    def work(i):
        for _ in range(60):
            with portalocker.Lock("lock" if how == "one" else f"lock{i}", "a", flags=portalocker.LOCK_EX) as file:
                file.write("x")
                sums(90000)
            sums(9000)

    each(multiprocessing.Process, 3, work)


def with_numba(_):
    """Dear items and cheap ones by turns, so that equal parts are even."""
    # Not beside the sources.
    os.environ["NUMBA_CACHE_DIR"] = os.path.abspath("numba")
    import numba
    import numpy

    numba.set_num_threads(2)

    @numba.njit(parallel=True, cache=True)
    def fill(out, rounds):
        for i in numba.prange(len(out)):
            s = 0.0
            for k in range(rounds[i]):
                s += numpy.sin(k) / (k + 1)
            out[i] = s

    out, rounds = numpy.zeros(400), numpy.tile([100000, 4000], 200)
    for _ in range(8):
        fill(out, rounds)



if __name__ == "__main__":
    globals()[f"with_{sys.argv[1]}"](sys.argv[2])
