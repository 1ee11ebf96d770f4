/* Fork detection by a page that the kernel wipes in the child (MADV_WIPEONFORK): it also sees a
 * child made by clone(2), which runs no atfork handlers, and costs one load to ask. */
#include "engine/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <pawl.h>

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint *page;           /* 0 in a child that has opened no client yet */
static unsigned newest_generation; /* ordinary memory: goes on counting in the child */

static int map_page(void)
{
    size_t len = (size_t)sysconf(_SC_PAGESIZE);
    void *map = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (map == MAP_FAILED)
        return PAWL_ESYSTEM;
    if (madvise(map, len, MADV_WIPEONFORK) != 0) {
        munmap(map, len);
        return PAWL_ESYSTEM;
    }
    page = map;
    return 0;
}

int pawli_fork_watch(unsigned *ret_generation)
{
    int rc = 0;

    pthread_mutex_lock(&mu);
    if (page == NULL)
        rc = map_page();
    if (rc == 0) {
        if (atomic_load_explicit(page, memory_order_relaxed) == 0)
            atomic_store_explicit(page, ++newest_generation, memory_order_relaxed);
        *ret_generation = atomic_load_explicit(page, memory_order_relaxed);
    }
    pthread_mutex_unlock(&mu);
    return rc;
}

int pawli_forked(unsigned generation)
{
    return atomic_load_explicit(page, memory_order_relaxed) != generation;
}
