/* Writes to a file and keeps it open, so that its client has no reason to send what is written.
 *
 *   unflushed FILE TEXT GO
 *
 * Writes TEXT to FILE, prints `@ unflushed written` on the console, and closes FILE once it can read from the fifo GO. No copy of the descriptor is
 * closed before: that would flush it, too. Ends with 0 if all of that was done. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 4)
        return 2;
    size_t length = strlen(argv[2]);
    int fd = open(argv[1], O_RDWR);
    if (fd < 0 || write(fd, argv[2], length) != (ssize_t)length) {
        perror(argv[1]);
        return 1;
    }
    int console = open("/dev/console", O_WRONLY | O_NOCTTY);
    dprintf(console, "@ unflushed written\n");
    close(console);
    char byte;
    int go = open(argv[3], O_RDONLY);
    if (go < 0 || read(go, &byte, 1) < 0) {
        perror(argv[3]);
        return 1;
    }
    return close(fd) == 0 ? 0 : 1;
}
