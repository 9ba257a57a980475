/* Ranks of MPI meet in a sum after each step: uneven shares of the work, or even ones. */
#include <math.h>
#include <mpi.h>
#include <string.h>

static volatile double sink;

static void spin(int n) {
    double s = 0;
    for (int i = 1; i < n; i++) s += sin(i) / i;
    sink = s;
}

int main(int count, char **words) {
    int rank;
    double in = 1, out;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int share = !strcmp(words[1], "even") ? 60 : rank ? 12 : 108;
    for (int k = 0; k < 150; k++) {
        for (int i = 0; i < share; i++) spin(20000);
        MPI_Allreduce(&in, &out, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    }
    MPI_Finalize();
}
