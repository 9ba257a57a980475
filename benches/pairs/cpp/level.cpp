// Two threads put into LevelDB, and wait for the disk each time, or not.
#include <cmath>
#include <cstring>
#include <leveldb/db.h>
#include <thread>
#include <vector>

static volatile double sink;

static double spin(int n) {
    double s = 0;
    for (int i = 1; i < n; i++) s += std::sin(i) / i;
    return s;
}

int main(int, char **words) {
    leveldb::DB *db;
    leveldb::Options options;
    options.create_if_missing = true;
    leveldb::DestroyDB("ldb", options);
    if (!leveldb::DB::Open(options, "ldb", &db).ok()) return 1;
    leveldb::WriteOptions how;
    how.sync = !strcmp(words[1], "sync");
    std::vector<std::thread> threads;
    for (int k = 0; k < 2; k++) {
        threads.emplace_back([=] {
            for (int i = 0; i < 6000; i++) {
                db->Put(how, std::to_string(k * 100000 + i), std::string(900, 'x'));
                sink = spin(15000);
            }
        });
    }
    for (auto &thread : threads) thread.join();
    delete db;
}
