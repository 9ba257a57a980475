// A visitor of Kyoto Cabinet computes while the database holds the record's lock: one database, or one for each thread.
#include <cmath>
#include <cstring>
#include <kchashdb.h>
#include <thread>
#include <vector>

using kyotocabinet::HashDB;

static volatile double sink;

static double spin(int n) {
    double s = 0;
    for (int i = 1; i < n; i++) s += std::sin(i) / i;
    return s;
}

struct Visitor : kyotocabinet::DB::Visitor {
    const char *visit_full(const char *, size_t, const char *, size_t, size_t *size) {
        sink = spin(20000);
        *size = 3;
        return "abc";
    }
    const char *visit_empty(const char *, size_t, size_t *size) {
        sink = spin(20000);
        *size = 3;
        return "abc";
    }
};

int main(int, char **words) {
    bool own = !strcmp(words[1], "own");
    std::vector<HashDB *> all;
    for (int k = 0; k < 3; k++) {
        if (k && !own) {
            all.push_back(all[0]);
            continue;
        }
        std::string name = "k" + std::to_string(k) + ".kch";
        remove(name.c_str());
        all.push_back(new HashDB);
        if (!all[k]->open(name, HashDB::OWRITER | HashDB::OCREATE)) return 1;
    }
    std::vector<std::thread> threads;
    for (int k = 0; k < 3; k++) {
        threads.emplace_back([=] {
            Visitor visitor;
            for (int i = 0; i < 3600; i++) {
                std::string key = "hot";
                all[k]->accept(key.data(), key.size(), &visitor, true);
                sink = spin(2000);
            }
        });
    }
    for (auto &thread : threads) thread.join();
}
