/* What the relay's thread and the functions for tests share. */
#ifndef TESTS_LIB_RELAY_INSIDE_H
#define TESTS_LIB_RELAY_INSIDE_H

#include "lib/relay.h"

#include <pthread.h>
#include <stdint.h>

#define PAIRS_MAX 512

struct chunk {
    struct chunk *next;
    int64_t due_ms;
    size_t len;
    size_t at;
    char bytes[];
};

struct stream {
    struct chunk *first;
    struct chunk **end;
    bool held; /* relay_hold_present() */
    bool ended; /* its source has closed */
};

struct pair {
    int fd
        [2]; /* by the way that ends there: [RELAY_UP] is the server's, [RELAY_DOWN] the client's */
    struct stream stream[2];
};

struct wishes {
    bool hold;
    bool drop;
    int delay_min_ms;
    int delay_max_ms;
    bool cut;
    size_t cut_after;
    size_t bytes;
};

struct relay {
    char path[108];
    char url[64];
    int port;
    int listener;
    int wake;
    pthread_t thread;
    pthread_mutex_t mu;
    bool stop;
    bool break_all;
    bool refuse;
    bool ignore;
    char answer_part[64];
    char answer_text[512];
    int answer_times;
    char replace_from[64];
    char replace_to[64];
    unsigned n_accepted;
    unsigned seed;
    struct wishes wishes[2];
    struct pair *pairs[PAIRS_MAX];
    size_t n_pairs;
};

void *relay_main(void *relay);
/* Ends pair number @i with a reset on both sides. */
void relay_end_pair(struct relay *r, size_t i);

#endif
