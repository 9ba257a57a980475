// A loop of oneTBB whose first half is dear: cut in equal parts beforehand, or dealt in small ones.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <tbb/parallel_for.h>
#include <tbb/partitioner.h>

static double spin(int n) {
    double s = 0;
    for (int i = 1; i < n; i++) s += std::sin(i) / i;
    return s;
}

int main(int, char **words) {
    bool cut = !strcmp(words[1], "static");
    double out[400];
    auto body = [&](const tbb::blocked_range<int> &range) {
        for (int i = range.begin(); i < range.end(); i++) out[i] = spin(i < 200 ? 45000 : 5000);
    };
    for (int round = 0; round < 40; round++) {
        if (cut) tbb::parallel_for(tbb::blocked_range<int>(0, 400), body, tbb::static_partitioner());
        else tbb::parallel_for(tbb::blocked_range<int>(0, 400, 4), body, tbb::simple_partitioner());
    }
    printf("%f\n", out[0]);
}
