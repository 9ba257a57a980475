// Four sessions of Boost.Asio, each a chain of handlers, on two threads: one strand for all, or a strand each.
#include <boost/asio.hpp>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

namespace io = boost::asio;

static double spin(int n) {
    double s = 0;
    for (int i = 1; i < n; i++) s += std::sin(i) / i;
    return s;
}

struct session {
    io::strand<io::io_context::executor_type> strand;
    int left;
    double sum;
};

static void step(session *s) {
    s->sum += spin(25000);
    if (--s->left) io::post(s->strand, [s] { step(s); });
}

int main(int, char **words) {
    bool own = !strcmp(words[1], "own");
    io::io_context context;
    auto one = io::make_strand(context);
    std::vector<session> all;
    for (int i = 0; i < 4; i++) all.push_back({own ? io::make_strand(context) : one, 2400, 0});
    for (auto &s : all) io::post(s.strand, [&s] { step(&s); });
    std::thread thread([&] { context.run(); });
    context.run();
    thread.join();
}
