/* Takes one lock on a file and says on the console what came of it.
 *
 *   locks NAME fcntl|flock read|write try|wait|until FILE START LENGTH [GO]
 *
 * try asks once; wait blocks in the kernel; until asks again and again. Says `@ NAME asks`, then `@ NAME granted MS`
 * or `@ NAME refused MS`, where MS are the milliseconds since it asked first. With GO, a named pipe, a granted lock is
 * held until somebody writes to the pipe; without, it is given back at once. Ends with 0 if granted, 1 if refused. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static const char *name;

static void say(const char *format, ...) {
    char line[200];
    int n = snprintf(line, sizeof line, "@ %s ", name);
    va_list list;
    va_start(list, format);
    n += vsnprintf(line + n, sizeof line - n - 1, format, list);
    va_end(list);
    line[n++] = '\n';
    int console = open("/dev/console", O_WRONLY | O_NOCTTY);
    if (console < 0 || write(console, line, n) != n)
        perror("console");
    close(console);
}

static long now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int set(int fd, int whole, int write, int block, off_t start, off_t length) {
    if (whole)
        return flock(fd, (write ? LOCK_EX : LOCK_SH) | (block ? 0 : LOCK_NB));
    struct flock l = {
        .l_type = write ? F_WRLCK : F_RDLCK, .l_whence = SEEK_SET, .l_start = start, .l_len = length};
    return fcntl(fd, block ? F_SETLKW : F_SETLK, &l);
}

int main(int argc, char **argv) {
    if (argc < 8)
        return 2;
    name = argv[1];
    int whole = !strcmp(argv[2], "flock"), write = !strcmp(argv[3], "write");
    int block = !strcmp(argv[4], "wait"), again = !strcmp(argv[4], "until");
    off_t start = atoll(argv[6]), length = atoll(argv[7]);
    int fd = open(argv[5], O_RDWR | O_CREAT, 0644);
    if (fd < 0) {
        say("cannot open: %s", strerror(errno));
        return 2;
    }
    long begin = now_ms();
    say("asks");
    while (set(fd, whole, write, block, start, length) != 0) {
        if (errno != EAGAIN && errno != EACCES) {
            say("failed: %s", strerror(errno));
            return 2;
        }
        if (!again) {
            say("refused %ld", now_ms() - begin);
            return 1;
        }
        /* There is no event for a lock that nobody waits for. */
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    say("granted %ld", now_ms() - begin);
    char byte;
    if (argc > 8) {
        int go = open(argv[8], O_RDONLY);
        if (go < 0 || read(go, &byte, 1) < 0)
            return 2;
    }
    return 0;
}
