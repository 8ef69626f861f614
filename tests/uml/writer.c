/* Writes blocks one behind another, each on the server before the next one, and reads an earlier one again after each;
 * holds a lock on the file all the time.
 *
 *   writer NAME FILE STOP
 *
 * Every word of block N is N. Says `@ NAME at N` on the console every 16 blocks, and ends with `wrote N` when there is
 * a file STOP. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096, WORDS = BLOCK / sizeof(uint64_t) };

static int transfer(int fd, uint64_t *block, uint64_t n) {
    for (int at = 0; at < WORDS; at++)
        block[at] = n;
    if (pwrite(fd, block, BLOCK, n * BLOCK) != BLOCK)
        return perror("write"), -1;
    if (pread(fd, block, BLOCK, n / 2 * BLOCK) != BLOCK)
        return perror("read"), -1;
    for (int at = 0; at < WORDS; at++)
        if (block[at] != n / 2)
            return fprintf(stderr, "block %ju has %ju\n", n / 2, block[at]), -1;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    /* Past the cache: the server has what was written, and is asked for what is read. */
    int fd = open(argv[2], O_RDWR | O_CREAT | O_TRUNC | O_DIRECT, 0644);
    if (fd < 0)
        return perror(argv[2]), 1;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &lock) != 0)
        return perror("lock"), 1;
    uint64_t *block, n;
    if (posix_memalign((void **)&block, BLOCK, BLOCK) != 0)
        return 1;
    for (n = 0; access(argv[3], F_OK) != 0; n++) {
        if (transfer(fd, block, n) != 0)
            return 1;
        if (n % 16 == 0) {
            int console = open("/dev/console", O_WRONLY | O_NOCTTY);
            dprintf(console, "@ %s at %ju\n", argv[1], n);
            close(console);
        }
        /* The processor is others', too. */
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
    printf("wrote %ju\n", n);
    return close(fd) == 0 ? 0 : (perror("close"), 1);
}
