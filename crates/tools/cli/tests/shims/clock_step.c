/* Preloaded, it adds the seconds in the file $CLOCK_STEP to the wall clock of a program, and to no other clock. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static const volatile long *step;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("CLOCK_STEP");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    void *at = mmap(NULL, sizeof *step, PROT_READ, MAP_SHARED, file, 0);
    if (at == MAP_FAILED) _exit(99);
    close(file);
    step = at;
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    int done = real ? real(clock, time) : -1;
    if (done == 0 && clock == CLOCK_REALTIME) time->tv_sec += *step;
    return done;
}
