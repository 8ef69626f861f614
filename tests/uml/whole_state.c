/*
 * Loaded before a guest's kernel (LD_PRELOAD), so that it runs on processors whose state is larger
 * than it knows: the host takes a process's extended registers only whole, and answers EFAULT to
 * Linux 6.1 as a guest, which sets the first 2696 bytes (processors with AMX have some 11,000). What
 * it leaves out is kept as it is.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* No processor has more. */
#define STATE_MAX (64 << 10)

/* As libc's: the kernel stores what is peeked, and libc returns it. */
static long call(long request, pid_t pid, void *address, void *data)
{
	long peeked = 0;
	int peeks = request == PTRACE_PEEKTEXT || request == PTRACE_PEEKDATA || request == PTRACE_PEEKUSER;
	long result = syscall(SYS_ptrace, request, pid, address, peeks ? &peeked : data);

	if (!peeks || result != 0)
		return result;
	errno = 0;
	return peeked;
}

long ptrace(enum __ptrace_request request, ...)
{
	static char state[STATE_MAX];
	struct iovec whole = { state, sizeof state };
	va_list rest;

	va_start(rest, request);
	pid_t pid = va_arg(rest, pid_t);
	void *address = va_arg(rest, void *), *data = va_arg(rest, void *);
	va_end(rest);
	if (request == PTRACE_SETREGSET && address == (void *)NT_X86_XSTATE &&
	    call(PTRACE_GETREGSET, pid, address, &whole) == 0) {
		const struct iovec *given = data;

		if (given->iov_len < whole.iov_len) {
			memcpy(state, given->iov_base, given->iov_len);
			data = &whole;
		}
	}
	return call(request, pid, address, data);
}
