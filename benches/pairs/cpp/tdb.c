/* Three processes compute under the lock of a hash chain of TDB: one database, or one each. */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <tdb.h>
#include <unistd.h>

static volatile double sink;

static void spin(int n) {
    double s = 0;
    for (int i = 1; i < n; i++) s += sin(i) / i;
    sink = s;
}

static void work(int k) {
    char name[20];
    sprintf(name, "t%d.tdb", k);
    struct tdb_context *db = tdb_open(name, 0, 0, O_RDWR | O_CREAT, 0600);
    TDB_DATA key = {(unsigned char *)"key", 3}, data = {(unsigned char *)"data", 4};
    for (int i = 0; i < 2600; i++) {
        tdb_chainlock(db, key);
        spin(30000);
        tdb_store(db, key, data, TDB_REPLACE);
        tdb_chainunlock(db, key);
        spin(3000);
    }
}

int main(int count, char **words) {
    (void)count;
    bool own = !strcmp(words[1], "own");
    for (int k = 0; k < 3; k++) {
        if (!fork()) {
            work(own ? k : 0);
            _exit(0);
        }
    }
    while (wait(0) > 0);
}
