/* Threads that take turns at a mutex whose holder is slow for one known reason, and the same without that reason: the
 * mended one makes the same calls, but they do not take the time.
 *
 *   holders REASON [mended] dur=MS [n=THREADS] [dir=FOLDER]      prints how often the mutex was held
 *
 * fsync    writes a page and syncs the file; mended: to a file in memory (/dev/shm)
 * client   asks a client over a pipe and reads its answer; mended: the client answers at once, not after 2 ms
 * second   takes a second mutex, which another thread holds over a nap of 2 ms; mended: that one naps before it takes it
 * fault    touches four pages of a file (made by `prepare`) that are not in memory; mended: that are, but are not mapped
 * compute  only computes: a competitor or a quota slows it (holders.py); mended: whoever has the mutex has a CPU
 * compete  no mutex: threads that compute until they are killed
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, second = PTHREAD_MUTEX_INITIALIZER;
static const char *reason;
static int mended, file, to_client[2], from_client[2];
static long hold_us = 200, think_us = 200, deadline_ns;
static char *map;
static const long PAGES = 32768;
static _Atomic long done, touched;
static _Atomic int stopped;

static long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long cpu_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

/* CPU time, not time: who is preempted has as much to do. */
static void compute(long us) {
    long end = cpu_ns() + us * 1000;
    while (cpu_ns() < end)
        for (volatile int i = 0; i < 200; i++);
}

static void nap(long us) {
    struct timespec t = {0, us * 1000};
    nanosleep(&t, NULL);
}

static void must(int ok, const char *what) {
    if (!ok) {
        perror(what);
        exit(1);
    }
}

static void slow_part(void) {
    char page[4096] = {0};
    if (!strcmp(reason, "fsync")) {
        must(pwrite(file, page, sizeof page, 0) == sizeof page && fsync(file) == 0, "fsync");
    } else if (!strcmp(reason, "client")) {
        must(write(to_client[1], page, 1) == 1 && read(from_client[0], page, 1) == 1, "client");
    } else if (!strcmp(reason, "second")) {
        pthread_mutex_lock(&second);
        pthread_mutex_unlock(&second);
    } else if (!strcmp(reason, "fault")) {
        for (int i = 0; i < 4; i++) {
            long page = touched++ % PAGES;
            *(volatile char *)(map + page * 4096);
        }
    }
}

/* The same call in both, so that it costs both the same. */
static void first(int is_first) {
    struct sched_param p = {.sched_priority = is_first && mended ? 1 : 0};
    if (!strcmp(reason, "compute")) sched_setscheduler(0, p.sched_priority ? SCHED_FIFO : SCHED_OTHER, &p);
}

static void *worker(void *arg) {
    while (now_ns() < deadline_ns) {
        compute(think_us);
        pthread_mutex_lock(&lock);
        first(1);
        compute(hold_us);
        slow_part();
        pthread_mutex_unlock(&lock);
        first(0);
        done++;
    }
    return arg;
}

static void *competitor(void *arg) {
    for (;;) compute(1000);
    return arg;
}

static void *napper(void *arg) {
    while (!stopped) {
        if (mended) nap(2000);
        pthread_mutex_lock(&second);
        if (!mended) nap(2000);
        pthread_mutex_unlock(&second);
        nap(500);
    }
    return arg;
}

static void client(void) {
    char c;
    close(to_client[1]);
    while (read(to_client[0], &c, 1) == 1) {
        if (!mended) nap(2000);
        if (write(from_client[1], &c, 1) != 1) break;
    }
    _exit(0);
}

int main(int argc, char **argv) {
    long dur_ms = 1000, n = 4;
    const char *dir = ".";
    reason = argc > 1 ? argv[1] : "compute";
    for (int i = 2; i < argc; i++) {
        mended |= !strcmp(argv[i], "mended");
        sscanf(argv[i], "dur=%ld", &dur_ms);
        sscanf(argv[i], "n=%ld", &n);
        sscanf(argv[i], "hold=%ld", &hold_us);
        sscanf(argv[i], "think=%ld", &think_us);
        if (!strncmp(argv[i], "dir=", 4)) dir = argv[i] + 4;
    }
    char path[4096];
    int in_memory = mended && !strcmp(reason, "fsync");
    snprintf(path, sizeof path, "%s/holders-%d.tmp", in_memory ? "/dev/shm" : dir, getpid());
    static char block[1 << 20];
    if (!strcmp(reason, "fsync")) {
        file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
        must(file >= 0, path);
        unlink(path);
    }
    if (!strcmp(reason, "fault") || !strcmp(reason, "prepare")) {
        snprintf(path, sizeof path, "%s/holders.pages", dir);
        file = open(path, O_RDWR | O_CREAT, 0600);
        must(file >= 0, path);
    }
    if (!strcmp(reason, "prepare")) {
        for (long i = 0; i < PAGES * 4096 / (long)sizeof block; i++)
            must(write(file, block, sizeof block) == sizeof block, "write");
        must(fsync(file) == 0, "fsync");
        return 0;
    }
    if (!strcmp(reason, "fault")) {
        if (!mended) posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
        while (mended && read(file, block, sizeof block) > 0);
        posix_fadvise(file, 0, 0, POSIX_FADV_RANDOM);
        map = mmap(NULL, PAGES * 4096, PROT_READ, MAP_SHARED, file, 0);
        must(map != MAP_FAILED, "mmap");
        madvise(map, PAGES * 4096, MADV_RANDOM);
    }
    pid_t asked = 0;
    if (!strcmp(reason, "client")) {
        must(pipe(to_client) == 0 && pipe(from_client) == 0, "pipe");
        asked = fork();
        if (asked == 0) client();
        close(to_client[0]);
    }
    pthread_t threads[64], other;
    if (!strcmp(reason, "second")) pthread_create(&other, NULL, napper, NULL);
    deadline_ns = now_ns() + dur_ms * 1000000;
    void *(*does)(void *) = strcmp(reason, "compete") ? worker : competitor;
    for (long i = 0; i < n && i < 64; i++) pthread_create(&threads[i], NULL, does, (void *)i);
    for (long i = 0; i < n && i < 64; i++) pthread_join(threads[i], NULL);
    stopped = 1;
    if (!strcmp(reason, "second")) pthread_join(other, NULL);
    if (asked > 0) {
        close(to_client[1]);
        waitpid(asked, NULL, 0);
    }
    printf("{\"held\": %ld, \"per_s\": %.1f}\n", (long)done, (double)done * 1000 / (double)dur_ms);
    return 0;
}
