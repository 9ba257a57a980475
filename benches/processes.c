/* Starts and reaps processes that live for a moment, as a build or a shell script does.
 *
 *   processes PARENTS TOTAL CHILD     PARENTS of them at a time, TOTAL in all, each runs CHILD
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    if (argc != 4)
        return 2;
    int parents = atoi(argv[1]), each = atoi(argv[2]) / parents;
    for (int p = 0; p < parents; p++) {
        if (fork())
            continue;
        for (int i = 0; i < each; i++) {
            pid_t child = fork();
            if (child == 0) {
                execl(argv[3], argv[3], NULL);
                _exit(127);
            }
            waitpid(child, NULL, 0);
        }
        return 0;
    }
    while (wait(NULL) > 0) {
    }
    return 0;
}
