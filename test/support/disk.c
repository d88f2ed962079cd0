/* A disk that tests can make slow, stop, or fill: preloaded in front of the C library.
 *
 *   DISK_DELAY_MS   every sync takes so much longer
 *   DISK_HOLD       while this file exists, syncs do not return
 *   DISK_FULL       while this file exists, writes to files whose path holds its content fail with ENOSPC; when it is
 *                   empty, writes to *.db, *-wal and *-journal files; such a path has no room left for who asks
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
#include <sys/statvfs.h>
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

/* Reads what is in the file that a variable names. Whether it is there. */
static int content(const char *variable, char *into, size_t size) {
  const char *path = getenv(variable);
  if (!path) return 0;
  int fd = open(path, O_RDONLY);
  if (fd < 0) return 0;
  ssize_t length = read(fd, into, size - 1);
  into[length > 0 ? length : 0] = 0;
  close(fd);
  return 1;
}

/* Why a write must fail; 0 when it may be made. */
static int refusal(int fd) {
  char of[256] = "";
  int reason = content("DISK_FULL", of, sizeof of) ? ENOSPC : present("DISK_READONLY") ? EROFS : 0;
  if (!reason) return 0;
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return 0;
  path[length] = 0;
  return strstr(path, of[0] ? of : ".db") != NULL ? reason : 0;
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

ssize_t write(int fd, const void *data, size_t size) {
  int reason = refusal(fd);
  if (reason) {
    errno = reason;
    return -1;
  }
  return syscall(SYS_write, fd, data, size);
}

/* Whoever looks for room before he writes finds none. */
int statvfs(const char *path, struct statvfs *into) {
  static int (*real)(const char *, struct statvfs *);
  if (!real) real = dlsym(RTLD_NEXT, "statvfs");
  int result = real(path, into);
  char of[256] = "";
  if (result == 0 && content("DISK_FULL", of, sizeof of) && of[0] && strstr(path, of)) into->f_bavail = into->f_bfree = 0;
  return result;
}

int statvfs64(const char *path, struct statvfs64 *into) {
  return statvfs(path, (struct statvfs *)into);
}
