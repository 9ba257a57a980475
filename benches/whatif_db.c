/* Threads that each work on a database of their own in memory: what they share is SQLite's own.
 *
 *   whatif_db threads=N dur=MS memstatus=0|1
 *
 * memstatus=1, the default of SQLite, counts all memory under one mutex of the process;
 * memstatus=0 (SQLITE_CONFIG_MEMSTATUS) does not. Prints JSON as wl does. */
#include <pthread.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int threads = 2, dur = 500, memstatus = 1;
static long ops[64];
static volatile int stop;

static long now_us(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static void must(int ok, const char *what) {
    if (!ok) {
        fprintf(stderr, "db: %s\n", what);
        exit(1);
    }
}

static void *work(void *arg) {
    long me = (long)arg;
    sqlite3 *db;
    sqlite3_stmt *put, *get;
    must(sqlite3_open(":memory:", &db) == SQLITE_OK, "open");
    must(sqlite3_exec(db, "CREATE TABLE t (id INTEGER PRIMARY KEY, name TEXT)", 0, 0, 0) == SQLITE_OK, "create");
    for (long i = 0; !stop; i++) {
        /* Prepared anew each time, as programs without a cache of statements do: it allocates. */
        must(sqlite3_prepare_v2(db, "INSERT OR REPLACE INTO t VALUES (?, ?)", -1, &put, 0) == SQLITE_OK, "prepare");
        sqlite3_bind_int64(put, 1, i % 1000);
        sqlite3_bind_text(put, 2, "some name that is not too short", -1, SQLITE_TRANSIENT);
        must(sqlite3_step(put) == SQLITE_DONE, "insert");
        sqlite3_finalize(put);
        must(sqlite3_prepare_v2(db, "SELECT name FROM t WHERE id = ?", -1, &get, 0) == SQLITE_OK, "prepare");
        sqlite3_bind_int64(get, 1, (i * 7) % 1000);
        sqlite3_step(get);
        sqlite3_finalize(get);
        ops[me]++;
    }
    sqlite3_close(db);
    return 0;
}

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        sscanf(argv[i], "threads=%d", &threads);
        sscanf(argv[i], "dur=%d", &dur);
        sscanf(argv[i], "memstatus=%d", &memstatus);
    }
    must(threads >= 1 && threads <= 64, "threads=1 to 64");
    sqlite3_config(SQLITE_CONFIG_MULTITHREAD);
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, memstatus);
    pthread_t t[64];
    long begin = now_us(), all = 0;
    for (long i = 0; i < threads; i++) pthread_create(&t[i], 0, work, (void *)i);
    struct timespec nap = {dur / 1000, dur % 1000 * 1000000L};
    nanosleep(&nap, 0);
    stop = 1;
    for (int i = 0; i < threads; i++) pthread_join(t[i], 0), all += ops[i];
    printf("{\"ops\": %ld, \"wall_us\": %ld}\n", all, now_us() - begin);
    return 0;
}
