/* Holds a file open while the test removes it on the server, and then goes on using it as any program may.
 *
 *   keeper FILE GO [unlocked]
 *
 * Writes to FILE, locks it unless told otherwise, says `@ keeper open` on the console, waits until it can read from the fifo GO, and then reads,
 * writes, flushes, looks at, truncates and unlocks it. Ends with 0 if all of that went as on a local file. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int check(int good, const char *what) {
    if (!good)
        perror(what);
    return good;
}

static int use(int fd, int locked) {
    struct stat st;
    char back[16] = "";
    struct flock unlock = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    /* What the client has cached says nothing of the server. */
    int good = check(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
    good &= check(pread(fd, back, 6, 0) == 6 && memcmp(back, "before", 6) == 0, "pread");
    good &= check(pwrite(fd, "hind", 4, 2) == 4, "pwrite");
    good &= check(fsync(fd) == 0, "fsync");
    good &= check(fstat(fd, &st) == 0, "fstat");
    good &= check(st.st_size == 6, "size");
    good &= check(ftruncate(fd, 3) == 0, "ftruncate");
    good &= check(fstat(fd, &st) == 0 && st.st_size == 3, "size after ftruncate");
    good &= check(!locked || fcntl(fd, F_SETLK, &unlock) == 0, "unlock");
    return good;
}

int main(int argc, char **argv) {
    if (argc != 3 && argc != 4)
        return 2;
    int locked = argc == 3;
    int fd = open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0644);
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (!check(fd >= 0, argv[1]) || !check(write(fd, "before", 6) == 6 && fsync(fd) == 0, "write") ||
        !check(!locked || fcntl(fd, F_SETLK, &lock) == 0, "lock"))
        return 1;
    int console = open("/dev/console", O_WRONLY | O_NOCTTY);
    dprintf(console, "@ keeper open\n");
    close(console);
    char byte;
    int go = open(argv[2], O_RDONLY);
    if (!check(go >= 0 && read(go, &byte, 1) == 1, argv[2]))
        return 1;
    int good = use(fd, locked);
    good &= check(close(fd) == 0, "close");
    return good ? 0 : 1;
}
