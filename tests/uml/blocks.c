/* Writes at random places of a file past the page cache and reads earlier ones again, until there is a file STOP; then
 * reads all of it.
 *
 *   blocks NAME FILE STOP SEED
 *
 * Every word of a block says which block it is and the how-manieth write of it. Says `@ NAME at OPERATIONS` on the
 * console every 64 operations, and ends with `wrote N`. What is wrong is on standard error, and a status of 1. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BLOCK = 4096, WORDS = BLOCK / sizeof(uint64_t), BLOCKS = 4096, MOST = 32, TOLD_EVERY = 64 };

static uint32_t written[BLOCKS];
static uint64_t *buffer, state;

static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static uint64_t word(size_t block) { return written[block] ? (uint64_t)block << 32 | written[block] : 0; }

static int put(int fd, size_t first, size_t count) {
    for (size_t n = 0; n < count; n++) {
        written[first + n]++;
        for (int at = 0; at < WORDS; at++)
            buffer[n * WORDS + at] = word(first + n);
    }
    if (pwrite(fd, buffer, count * BLOCK, first * BLOCK) != (ssize_t)(count * BLOCK))
        return perror("write"), -1;
    return 0;
}

static int check(int fd, size_t first, size_t count) {
    if (pread(fd, buffer, count * BLOCK, first * BLOCK) != (ssize_t)(count * BLOCK))
        return perror("read"), -1;
    for (size_t n = 0; n < count; n++)
        for (int at = 0; at < WORDS; at++)
            if (buffer[n * WORDS + at] != word(first + n))
                return fprintf(stderr, "block %zu, word %d: %jx instead of %jx\n", first + n, at,
                               (uintmax_t)buffer[n * WORDS + at], (uintmax_t)word(first + n)), -1;
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 5)
        return fputs("usage: blocks NAME FILE STOP SEED\n", stderr), 2;
    int fd = open(argv[2], O_RDWR | O_CREAT | O_DIRECT, 0600), console = open("/dev/console", O_WRONLY | O_NOCTTY);
    if (fd < 0 || console < 0 || posix_memalign((void **)&buffer, BLOCK, MOST * BLOCK))
        return perror(argv[2]), 1;
    if (ftruncate(fd, (off_t)BLOCKS * BLOCK))
        return perror("truncate"), 1;
    state = strtoull(argv[4], NULL, 0);
    for (unsigned done = 1; access(argv[3], F_OK); done++) {
        size_t count = 1 + draw() % MOST, first = draw() % (BLOCKS - count);
        if (draw() % 3 ? put(fd, first, count) : check(fd, first, count))
            return 1;
        if (done % TOLD_EVERY == 0) {
            if (fdatasync(fd))
                return perror("fdatasync"), 1;
            dprintf(console, "@ %s at %u\n", argv[1], done);
        }
    }
    uint64_t writes = 0;
    for (size_t at = 0; at < BLOCKS; at += MOST) {
        if (check(fd, at, MOST))
            return 1;
        for (size_t n = at; n < at + MOST; n++)
            writes += written[n];
    }
    if (fsync(fd))
        return perror("fsync"), 1;
    printf("wrote %ju\n", (uintmax_t)writes);
    return 0;
}
