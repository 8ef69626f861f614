/* Adds one to the number in a file, COUNT times, each time under a lock of its own.
 *
 *   counter NAME fcntl|flock FILE COUNT
 *
 * Says `@ NAME at N` on the console when it has done ten more. If every other program does so too, none of the
 * additions is lost. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

static int whole;

static int set(int fd, int take) {
    if (whole)
        return flock(fd, take ? LOCK_EX | LOCK_NB : LOCK_UN);
    struct flock l = {.l_type = take ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_len = 8};
    return fcntl(fd, F_SETLK, &l);
}

static int add_one(int fd) {
    /* The kernel would wait a second and more between two requests. */
    while (set(fd, 1) != 0) {
        if (errno != EAGAIN && errno != EACCES)
            return perror("lock"), -1;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    char text[16] = "";
    if (pread(fd, text, 8, 0) < 0)
        return perror("read"), -1;
    snprintf(text, sizeof text, "%07d\n", atoi(text) + 1);
    if (pwrite(fd, text, 8, 0) != 8)
        return perror("write"), -1;
    if (set(fd, 0) != 0)
        return perror("unlock"), -1;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 5)
        return 2;
    whole = !strcmp(argv[2], "flock");
    int fd = open(argv[3], O_RDWR | O_CREAT, 0644);
    if (fd < 0)
        return perror(argv[3]), 1;
    for (int n = 1; n <= atoi(argv[4]); n++) {
        if (add_one(fd) != 0)
            return 1;
        if (n % 10 == 0) {
            int console = open("/dev/console", O_WRONLY | O_NOCTTY);
            dprintf(console, "@ %s at %d\n", argv[1], n);
            close(console);
        }
    }
    return close(fd) == 0 ? 0 : (perror("close"), 1);
}
