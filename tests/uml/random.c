/* Seeded random operations on two files, each held against a model in memory, until SIGTERM.
 *
 *   random NAME DIRECTORY SEED [closed]
 *
 * With `closed` a file is closed before another one takes its name, as SMB demands.
 *
 * Says `@ NAME at OPERATIONS` on the console every so often, and `@ NAME lost: …` when a file is not what the model
 * says or an operation fails; its last operations are on standard error then. At the end the files lie in
 * DIRECTORY/0 and DIRECTORY/1, and what they must hold in /mnt/host/NAME.0 and NAME.1.
 *
 * A change of names that a server did and could not say so before it went down is done again by the client, and
 * fails: that is known from what is there, and no loss. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST = 320 << 10, PAGE = 4096, TOLD_EVERY = 50, REMEMBERED = 60 };

struct file {
    int fd, flags;
    unsigned names; /* how many it has had */
    char path[200];
    unsigned char *model; /* MOST bytes; zero from `size` on */
    size_t size;
};

static const char *name, *directory;
static struct file files[2];
static unsigned char *buffer;
static uint64_t state, done;
static unsigned unsupported;
static int closed_first;
static int repeated; /* the last rename was done twice: before a restart and after it */
static char remembered[REMEMBERED][100];
static volatile sig_atomic_t ending;

static void on_term(int signal) {
    (void)signal;
    ending = 1;
}

static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = (state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static size_t below(size_t n) { return n ? draw() % n : 0; }

static void say(const char *words) {
    char line[300];
    int n = snprintf(line, sizeof line, "@ %s %s\n", name, words);
    int console = open("/dev/console", O_WRONLY | O_NOCTTY);
    if (console < 0 || write(console, line, n) != n)
        perror("console");
    close(console);
}

static void note(const char *format, ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(remembered[done % REMEMBERED], sizeof remembered[0], format, list);
    va_end(list);
}

static _Noreturn void lost(const char *format, ...) {
    char words[200];
    int n = snprintf(words, sizeof words, "lost: operation %llu: ", (unsigned long long)done);
    va_list list;
    va_start(list, format);
    vsnprintf(words + n, sizeof words - n, format, list);
    va_end(list);
    uint64_t from = done < REMEMBERED ? 0 : done - REMEMBERED + 1;
    for (uint64_t i = from; i <= done; i++)
        fprintf(stderr, "%llu %s\n", (unsigned long long)i, remembered[i % REMEMBERED]);
    fprintf(stderr, "%s\n", words);
    fflush(stderr);
    say(words);
    exit(1);
}

static void must(int ok, const char *what) {
    if (!ok)
        lost("%s: %s", what, strerror(errno));
}

/* Some bytes of the file, more often few than many. */
static size_t some(size_t most) {
    static const size_t sizes[] = {16, 600, PAGE, 4 * PAGE, MOST / 4, MOST};
    size_t n = 1 + below(sizes[below(6)]);
    return n < most ? n : most;
}

static void fill(size_t length) {
    uint64_t word = 0;
    for (size_t i = 0; i < length; i++) {
        if (i % 8 == 0)
            word = draw();
        buffer[i] = (unsigned char)(word >> (i % 8 * 8));
    }
}

static void compare(struct file *f, const unsigned char *got, size_t at, size_t length, const char *how) {
    for (size_t i = 0; i < length; i++)
        if (got[i] != f->model[at + i])
            lost("%s: byte %zu of %s is %02x, not %02x", how, at + i, f->path, got[i], f->model[at + i]);
}

static void grow(struct file *f, size_t end) {
    if (end > f->size)
        f->size = end;
}

static void do_write(struct file *f) {
    size_t at = below(MOST), length = some(MOST - at);
    note("%s write %zu+%zu", f->path, at, length);
    fill(length);
    for (size_t n = 0; n < length;) {
        ssize_t more = pwrite(f->fd, buffer + n, length - n, at + n);
        must(more > 0, "write");
        n += more;
    }
    memcpy(f->model + at, buffer, length);
    grow(f, at + length);
}

static void do_read(struct file *f) {
    size_t at = below(f->size), length = some(MOST);
    size_t there = at + length > f->size ? f->size - at : length, n = 0;
    note("%s read %zu+%zu", f->path, at, length);
    for (;;) {
        ssize_t more = pread(f->fd, buffer + n, length - n, at + n);
        must(more >= 0, "read");
        n += more;
        if (more == 0 || n == length)
            break;
    }
    if (n != there)
        lost("%zu bytes at %zu of %s, not %zu", n, at, f->path, there);
    compare(f, buffer, at, n, "read");
}

static void do_truncate(struct file *f) {
    size_t size = below(4) ? below(MOST + 1) : 0;
    note("%s truncate %zu -> %zu", f->path, f->size, size);
    must(ftruncate(f->fd, size) == 0, "truncate");
    if (size < f->size)
        memset(f->model + size, 0, f->size - size);
    f->size = size;
}

static void do_map(struct file *f) {
    if (f->size == 0)
        return note("nothing to map");
    size_t at = below(f->size), length = some(f->size - at);
    int change = below(2), sync = below(2);
    note("%s %s %zu+%zu%s", f->path, change ? "mapped write" : "mapped read", at, length, sync ? ", msync" : "");
    int fd = open(f->path, O_RDWR); /* what is open may not be for mapping: O_DIRECT */
    must(fd >= 0, "open");
    unsigned char *map = mmap(NULL, f->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(map != MAP_FAILED, "mmap");
    compare(f, map + at, at, length, "mapped");
    if (change) {
        fill(length);
        memcpy(map + at, buffer, length);
        memcpy(f->model + at, buffer, length);
        must(!sync || msync(map, f->size, MS_SYNC) == 0, "msync");
    }
    must(munmap(map, f->size) == 0, "munmap");
    must(close(fd) == 0, "close after mmap");
}

/* Whether the client's version has the operation. */
static int had(int ok, const char *what) {
    if (!ok && (errno == EOPNOTSUPP || errno == ENOSYS)) {
        unsupported++;
        return 0;
    }
    must(ok, what);
    return 1;
}

static void do_allocate(struct file *f) {
    size_t at = below(MOST), length = some(MOST - at);
    note("%s allocate %zu+%zu", f->path, at, length);
    if (had(fallocate(f->fd, 0, at, length) == 0, "allocate"))
        grow(f, at + length);
}

static void do_punch(struct file *f) {
    size_t at = below(MOST), length = some(MOST - at);
    note("%s punch %zu+%zu", f->path, at, length);
    if (had(fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, length) == 0, "punch") && at < f->size)
        memset(f->model + at, 0, length < f->size - at ? length : f->size - at);
}

static void do_copy(struct file *from, struct file *to) {
    size_t at = below(from->size), length = some(from->size - at), into = below(MOST);
    if (length > MOST - into)
        length = MOST - into;
    if (from == to && at < into + length && into < at + length)
        return note("no copy onto itself");
    note("%s copy %zu+%zu -> %s %zu", from->path, at, length, to->path, into);
    if (length == 0)
        return;
    loff_t in = at, out = into;
    for (size_t left = length; left;) {
        ssize_t n = copy_file_range(from->fd, &in, to->fd, &out, left, 0);
        if (n < 0 && errno == EINVAL && left == length) {
            /* The client asks for what the server's file does not have yet, when what made it that long waits to be
             * written (RFC 7862 section 15.2.3 has it refused); and it does not copy O_DIRECT by itself. */
            must(fsync(from->fd) == 0, "fsync");
            n = copy_file_range(from->fd, &in, to->fd, &out, left, 0);
            if (n < 0 && errno == EINVAL && (from->flags | to->flags) & O_DIRECT)
                errno = EOPNOTSUPP;
        }
        if (!had(n > 0, "copy_file_range"))
            return;
        left -= n;
    }
    memmove(to->model + into, from->model + at, length);
    grow(to, into + length);
}

/* Between two lseeks all must be as they say; a hole is zeros. */
static void do_seek(struct file *f) {
    note("%s seek", f->path);
    size_t at = below(f->size);
    while (at < f->size) {
        off_t data = lseek(f->fd, at, SEEK_DATA);
        must(data >= 0 || errno == ENXIO, "SEEK_DATA");
        size_t end = data < 0 ? f->size : (size_t)data;
        if (end < at || end > f->size)
            lost("data at %zu of %s, %zu long", end, f->path, f->size);
        memset(buffer, 0, end - at);
        compare(f, buffer, at, end - at, "hole");
        if (data < 0)
            return;
        off_t hole = lseek(f->fd, data, SEEK_HOLE);
        must(hole >= 0, "SEEK_HOLE");
        if (hole <= data || (size_t)hole > f->size)
            lost("hole at %lld after data at %lld of %s, %zu long", (long long)hole, (long long)data, f->path, f->size);
        at = hole;
    }
}

static void open_again(struct file *f) {
    must(f->fd < 0 || close(f->fd) == 0, "close");
    f->fd = open(f->path, O_RDWR | f->flags);
    must(f->fd >= 0, "open");
}

static void reopen(struct file *f) {
    static const int kinds[] = {0, 0, 0, O_SYNC, O_DIRECT};
    f->flags = kinds[below(5)];
    open_again(f);
}

static void check_size(struct file *f) {
    struct stat st;
    must(stat(f->path, &st) == 0, "stat");
    if ((size_t)st.st_size != f->size)
        lost("%s is %lld long, not %zu", f->path, (long long)st.st_size, f->size);
}

static void check_all(struct file *f) {
    must(posix_fadvise(f->fd, 0, 0, POSIX_FADV_DONTNEED) == 0, "fadvise");
    size_t n = 0;
    for (ssize_t more = 1; more > 0; n += more) {
        more = pread(f->fd, buffer + n, MOST + PAGE - n, n);
        must(more >= 0, "read");
    }
    if (n != f->size)
        lost("%s has %zu bytes, not %zu", f->path, n, f->size);
    compare(f, buffer, 0, n, "all");
}

static void do_sync(struct file *f) {
    note("%s fsync, read back with nothing cached", f->path);
    must(fsync(f->fd) == 0, "fsync");
    check_all(f);
    check_size(f);
}

/*
 * Has the client ask for the attributes of the directory: names that it remembers are looked up again if the
 * directory has changed. Its silly rename may have taken a name away without its knowledge.
 */
static void look_again(void) {
    struct statx there;
    must(statx(AT_FDCWD, directory, AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &there) == 0, "statx");
}

/*
 * Linux 6.1 asks no server for a rename onto a name that it holds in a silly rename of its own
 * (nfs_rename: ETXTBSY), as after one whose reply went with a killed server. NFSv3 has no such
 * status. Else the rename is done, now or before: it may be repeated over a restart. To the client
 * a repeated one has failed, and what is open is no longer the file of a name to it: it would not
 * keep that for us (a silly rename) when the name goes to another file. So it is to be opened again.
 */
static int refused_by_client(const char *from, const char *to) {
    struct stat before, after;
    repeated = 0;
    must(stat(from, &before) == 0, "stat");
    if (rename(from, to) == 0)
        return 0;
    int why = errno;
    look_again();
    int gone = stat(to, &after) != 0 && errno == ENOENT;
    int there = !gone && after.st_ino == before.st_ino;
    errno = why;
    if (why == ETXTBSY && gone) { /* its own silly rename was the one that was repeated */
        repeated = 1;
        must(rename(from, to) == 0, "rename onto a name that the client took away");
        return 0;
    }
    must(why == ETXTBSY || (why == ENOENT && there), "rename");
    repeated = there;
    return why == ETXTBSY && !there;
}

static void rename_to(struct file *f, const char *from, const char *to) {
    must(!refused_by_client(from, to), "rename");
    if (f->path != to)
        snprintf(f->path, sizeof f->path, "%s", to);
}

static void do_rename(struct file *f) {
    char to[200];
    snprintf(to, sizeof to, "%s/%d.%u", directory, f == &files[1], ++f->names);
    note("%s rename %s", f->path, to);
    rename_to(f, f->path, to);
    if (repeated)
        open_again(f);
    if (below(2))
        reopen(f);
}

/* As an editor saves: another file takes the name. */
static void do_replace(struct file *f) {
    char fresh[220], path[200];
    snprintf(path, sizeof path, "%s", f->path);
    snprintf(fresh, sizeof fresh, "%s.new", f->path);
    note("%s replace", f->path);
    int fd = open(fresh, O_RDWR | O_CREAT | O_TRUNC, 0644);
    must(fd >= 0, "create");
    for (size_t n = 0; n < f->size;) {
        ssize_t more = write(fd, f->model + n, f->size - n);
        must(more > 0, "write");
        n += more;
    }
    must(below(2) || fsync(fd) == 0, "fsync");
    if (closed_first) {
        must(close(f->fd) == 0 && close(fd) == 0, "close");
        f->fd = -1;
        must(rename(fresh, path) == 0, "rename");
        return open_again(f);
    }
    if (refused_by_client(fresh, path)) {
        note("%s not replaced: ETXTBSY of the client", f->path);
        must(unlink(fresh) == 0 && close(fd) == 0, "unlink of what was not to replace it");
        return;
    }
    must(close(f->fd) == 0, "close of what was replaced");
    f->fd = fd;
    f->flags = 0;
    if (repeated)
        open_again(f);
}

/* A lock that is held through a restart must be reclaimed: nobody else locks here, so it is to be had. */
static void do_lock(struct file *f) {
    static const short kinds[] = {F_RDLCK, F_WRLCK, F_UNLCK};
    struct flock l = {.l_type = kinds[below(3)], .l_start = below(MOST), .l_len = below(MOST)};
    note("%s lock %d %lld+%lld", f->path, l.l_type, (long long)l.l_start, (long long)l.l_len);
    must(fcntl(f->fd, F_SETLK, &l) == 0, "lock");
}

static void step(void) {
    struct file *f = &files[below(2)];
    switch (below(22)) {
    case 0 ... 4: do_write(f); break;
    case 5 ... 7: do_read(f); break;
    case 8: do_truncate(f); break;
    case 9 ... 11: do_map(f); break;
    case 12: do_allocate(f); break;
    case 13: do_punch(f); break;
    case 14 ... 15: do_copy(&files[below(2)], f); break;
    case 16: do_seek(f); break;
    case 17: do_sync(f); break;
    case 18: do_rename(f); break;
    case 19: do_replace(f); break;
    case 20: do_lock(f); break;
    case 21: note("%s reopen", f->path); reopen(f); break;
    }
}

static void leave(struct file *f, int number) {
    char path[200];
    note("%s end", f->path);
    must(fsync(f->fd) == 0, "fsync");
    reopen(f);
    check_all(f);
    must(close(f->fd) == 0, "close");
    snprintf(path, sizeof path, "%s/%d", directory, number);
    rename_to(f, f->path, path);
    snprintf(path, sizeof path, "/mnt/host/%s.%d", name, number);
    FILE *model = fopen(path, "w");
    must(model && fwrite(f->model, 1, f->size, model) == f->size && fclose(model) == 0, path);
}

int main(int argc, char **argv) {
    if (argc != 4 && argc != 5)
        return 2;
    closed_first = argc == 5;
    name = argv[1];
    directory = argv[2];
    state = strtoull(argv[3], NULL, 0);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = on_term, .sa_flags = SA_RESTART}, NULL);
    must(posix_memalign((void **)&buffer, PAGE, MOST + PAGE) == 0, "memory");
    for (int i = 0; i < 2; i++) {
        struct file *f = &files[i];
        snprintf(f->path, sizeof f->path, "%s/%d.0", directory, i);
        f->model = calloc(1, MOST + PAGE);
        f->fd = open(f->path, O_RDWR | O_CREAT | O_EXCL, 0644);
        must(f->model && f->fd >= 0, "create");
    }
    for (; !ending; done++) {
        step();
        if (done % TOLD_EVERY == 0) {
            char words[60];
            snprintf(words, sizeof words, "at %llu", (unsigned long long)done);
            say(words);
        }
    }
    leave(&files[0], 0);
    leave(&files[1], 1);
    printf("%llu operations, %u not supported\n", (unsigned long long)done, unsupported);
    return 0;
}
