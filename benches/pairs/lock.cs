// Three threads of Mono compute under a monitor: `lock.exe one` has one for all, `lock.exe own` one for each.
using System;
using System.Threading;

class Pairs {
    static double Spin(int n) {
        double s = 0;
        for (int i = 1; i < n; i++) s += Math.Sin(i) / i;
        return s;
    }

    static void Main(string[] words) {
        object one = new object();
        var threads = new Thread[3];
        for (int k = 0; k < 3; k++) {
            object mine = words[0] == "own" ? new object() : one;
            threads[k] = new Thread(() => {
                for (int i = 0; i < 1200; i++) {
                    lock (mine) Spin(25000);
                    Spin(2500);
                }
            });
            threads[k].Start();
        }
        foreach (var thread in threads) thread.Join();
    }
}
