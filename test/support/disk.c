/* A disk that tests can make slow, stop, or fill: preloaded in front of the C library.
 *
 *   DISK_DELAY_MS   every sync takes so much longer
 *   DISK_HOLD       while this file exists, syncs do not return
 *   DISK_FULL       while this file exists, writes to *.db, *-wal and *-journal files fail with ENOSPC
 *   DISK_READONLY   while this file exists, they fail with EROFS
 *   DISK_TRACE      each sync adds a line "<thread id> <process id>"
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int present(const char *variable) {
  const char *path = getenv(variable);
  struct stat ignored;
  return path && stat(path, &ignored) == 0;
}

static void before_sync(void) {
  const char *trace = getenv("DISK_TRACE");
  if (trace) {
    char line[64];
    int length = snprintf(line, sizeof line, "%ld %d\n", (long)syscall(SYS_gettid), (int)getpid());
    int fd = open(trace, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd >= 0) {
      if (syscall(SYS_write, fd, line, length) < 0) abort();
      close(fd);
    }
  }
  const char *delay = getenv("DISK_DELAY_MS");
  if (delay) usleep(atoi(delay) * 1000);
  while (present("DISK_HOLD")) usleep(2000);
}

/* Why a write must fail; 0 when it may be made. */
static int refusal(int fd) {
  int reason = present("DISK_FULL") ? ENOSPC : present("DISK_READONLY") ? EROFS : 0;
  if (!reason) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return strstr(path, ".db") != NULL ? reason : 0;
}

int fsync(int fd) {
  before_sync();
  return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd) {
  before_sync();
  return (int)syscall(SYS_fdatasync, fd);
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
  int reason = refusal(fd);
  if (reason) {
    errno = reason;
    return -1;
  }
  return syscall(SYS_pwrite64, fd, data, size, offset);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  return pwrite64(fd, data, size, offset);
}
