/* Lets file operations of a program fail, come back short, or take long: preloaded into it, so that the program itself knows nothing of it.
 *
 * DF11_FAULTS   rules, separated by semicolons: CALL:N:ERRNO, CALL:N:short, CALL:N:MSms. CALL is open, read, write, sync, truncate, rename, link, unlink
 *               or map; N the number of the call, from 1 on, or * for every one.
 * DF11_FOLDER   only operations on files below this folder count. "map" counts all large blocks of memory.
 * DF11_COUNTS   a file that gets "fired" when a rule was met, and at the end the number of calls of each kind, and the microseconds
 *               that writing and flushing files *.journal took.
 * DF11_CLOCK    seconds, separated by commas, by which the wall clock is wrong: the first at the first look at it, and so on, over and over.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { OPEN, READ, WRITE, SYNC, TRUNCATE, RENAME, LINK, UNLINK, MAP, KINDS };
static const char *const NAMES[KINDS] = {"open", "read", "write", "sync", "truncate", "rename", "link", "unlink", "map"};
enum { LARGE = 1 << 18 };

static atomic_long counts[KINDS];
static atomic_long journal_ns;
static atomic_bool fired;

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static void note(const char *text) {
    const char *path = getenv("DF11_COUNTS");
    if (!path) return;
    int file = REAL(open64)(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (file < 0) return;
    if (REAL(write)(file, text, strlen(text)) < 0) abort();
    close(file);
}

__attribute__((destructor)) static void at_exit(void) {
    char text[64];
    for (int kind = 0; kind < KINDS; kind++) {
        snprintf(text, sizeof text, "%s %ld\n", NAMES[kind], atomic_load(&counts[kind]));
        note(text);
    }
    snprintf(text, sizeof text, "journal-us %ld\n", atomic_load(&journal_ns) / 1000);
    note(text);
}

static int is_ours(const char *path) {
    const char *folder = getenv("DF11_FOLDER");
    return folder && path && strncmp(path, folder, strlen(folder)) == 0;
}

/* The path of an open file; empty where it has none. */
static const char *path_of(int fd, char path[PATH_MAX + 1]) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX);
    path[length < 0 ? 0 : length] = 0;
    return path;
}

static int is_ours_fd(int fd) {
    char path[PATH_MAX + 1];
    return is_ours(path_of(fd, path));
}

static long now_ns(void) {
    struct timespec time;
    REAL(clock_gettime)(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

/* Adds the time since `started` where the file is a journal of ours. */
static void took(int fd, long started) {
    long time = now_ns() - started;
    char path[PATH_MAX + 1];
    path_of(fd, path);
    size_t length = strlen(path), ending = strlen(".journal");
    if (is_ours(path) && length > ending && strcmp(path + length - ending, ".journal") == 0) atomic_fetch_add(&journal_ns, time);
}

/* Counts a call. The error number that it is to end with, -1 where it is to come back short, 0 where nothing is to happen. */
static int meet(int kind) {
    long number = atomic_fetch_add(&counts[kind], 1) + 1;
    const char *rules = getenv("DF11_FAULTS");
    int result = 0;
    for (const char *rule = rules; rule && *rule;) {
        char call[16], which[24], what[24];
        if (sscanf(rule, "%15[^:]:%23[^:]:%23[^;]", call, which, what) == 3 && strcmp(call, NAMES[kind]) == 0 &&
            (which[0] == '*' || atol(which) == number)) {
            if (!atomic_exchange(&fired, 1)) note("fired\n");
            long value = atol(what);
            if (strcmp(what, "short") == 0) result = -1;
            else if (strstr(what, "ms")) {
                struct timespec time = {value / 1000, value % 1000 * 1000000};
                nanosleep(&time, 0);
            } else result = (int)value;
        }
        rule = strchr(rule, ';');
        if (rule) rule++;
    }
    return result;
}

static int fails(int kind) {
    int error = meet(kind);
    if (error > 0) errno = error;
    return error > 0;
}

int open64(const char *path, int flags, ...) {
    __builtin_va_list rest;
    __builtin_va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? __builtin_va_arg(rest, mode_t) : 0;
    __builtin_va_end(rest);
    if (is_ours(path) && fails(OPEN)) return -1;
    return REAL(open64)(path, flags, mode);
}

/* The length to ask for, or 0 after an error. */
static size_t length_of(int fd, int kind, size_t length, int *failed) {
    *failed = 0;
    if (!is_ours_fd(fd)) return length;
    int met = meet(kind);
    if (met > 0) {
        errno = met;
        *failed = 1;
    }
    return met < 0 && length > 1 ? length / 2 : length;
}

ssize_t read(int fd, void *buffer, size_t length) {
    int failed;
    length = length_of(fd, READ, length, &failed);
    return failed ? -1 : REAL(read)(fd, buffer, length);
}

ssize_t pread64(int fd, void *buffer, size_t length, off64_t offset) {
    int failed;
    length = length_of(fd, READ, length, &failed);
    return failed ? -1 : REAL(pread64)(fd, buffer, length, offset);
}

ssize_t write(int fd, const void *buffer, size_t length) {
    int failed;
    length = length_of(fd, WRITE, length, &failed);
    return failed ? -1 : REAL(write)(fd, buffer, length);
}

ssize_t pwrite64(int fd, const void *buffer, size_t length, off64_t offset) {
    int failed;
    length = length_of(fd, WRITE, length, &failed);
    if (failed) return -1;
    long started = now_ns();
    ssize_t written = REAL(pwrite64)(fd, buffer, length, offset);
    took(fd, started);
    return written;
}

int fsync(int fd) { return is_ours_fd(fd) && fails(SYNC) ? -1 : REAL(fsync)(fd); }

int fdatasync(int fd) {
    if (is_ours_fd(fd) && fails(SYNC)) return -1;
    long started = now_ns();
    int result = REAL(fdatasync)(fd);
    took(fd, started);
    return result;
}

int ftruncate64(int fd, off64_t length) { return is_ours_fd(fd) && fails(TRUNCATE) ? -1 : REAL(ftruncate64)(fd, length); }

int rename(const char *from, const char *to) { return is_ours(from) && fails(RENAME) ? -1 : REAL(rename)(from, to); }

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    return is_ours(from) && fails(LINK) ? -1 : REAL(linkat)(from_folder, from, to_folder, to, flags);
}

int unlink(const char *path) { return is_ours(path) && fails(UNLINK) ? -1 : REAL(unlink)(path); }

int clock_gettime(clockid_t which, struct timespec *time) {
    static atomic_long looks;
    int result = REAL(clock_gettime)(which, time);
    const char *jumps = getenv("DF11_CLOCK");
    if (result || which != CLOCK_REALTIME || !jumps || !*jumps) return result;
    long count = 1;
    for (const char *at = jumps; *at; at++) count += *at == ',';
    const char *jump = jumps;
    for (long skip = atomic_fetch_add(&looks, 1) % count; skip > 0; skip--) jump = strchr(jump, ',') + 1;
    time->tv_sec += atol(jump);
    return 0;
}

void *mmap64(void *at, size_t length, int protection, int flags, int fd, off64_t offset) {
    if (fd < 0 && length >= LARGE && getenv("DF11_FOLDER") && fails(MAP)) return MAP_FAILED;
    return REAL(mmap64)(at, length, protection, flags, fd, offset);
}
