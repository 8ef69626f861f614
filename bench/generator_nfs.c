/* Random reads with libnfs, one in flight: URL OPERATIONS BYTES FILE_BYTES. For bench/generator-clients. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct nfs_context; struct nfsfh; struct nfs_url { char *server, *path, *file; };
struct nfs_context *nfs_init_context(void);
struct nfs_url *nfs_parse_url_full(struct nfs_context *, const char *);
int nfs_mount(struct nfs_context *, const char *, const char *);
int nfs_open(struct nfs_context *, const char *, int, struct nfsfh **);
int nfs_pread(struct nfs_context *, struct nfsfh *, uint64_t, uint64_t, void *);
char *nfs_get_error(struct nfs_context *);
int main(int n, char **a) {
    struct nfs_context *c = nfs_init_context(); struct nfs_url *u = nfs_parse_url_full(c, a[1]); struct nfsfh *f;
    static char buf[1 << 20]; long ops = atol(a[2]), size = atol(a[3]), file = atol(a[4]);
    if (!u || nfs_mount(c, u->server, u->path) || nfs_open(c, u->file, 0, &f)) { puts(nfs_get_error(c)); return 1; }
    for (long i = 0; i < ops; i++)
        if (nfs_pread(c, f, (uint64_t)(rand() % (file / size)) * size, size, buf) != size) { puts(nfs_get_error(c)); return 1; }
    puts("done"); return 0;
}
