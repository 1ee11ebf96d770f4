/* pawl doctor: what its parts share. Each part looks at one thing and adds findings. */
#ifndef PAWL_CLI_DOCTOR_H
#define PAWL_CLI_DOCTOR_H

#include <stdbool.h>

#include <jansson.h>

#include "options.h"
#include "store.h"

/* Ordered by weight: the exit code follows from the worst. */
enum level {
    LEVEL_OK,
    LEVEL_INFO,
    LEVEL_QUESTION, /* no tool can see it */
    LEVEL_REFUSED, /* not permitted here: nothing to conclude */
    LEVEL_WARN,
    LEVEL_FAIL
};

struct doctor {
    struct options *opt;
    const char *key; /* NULL: none */
    const char *symptom; /* NULL: none */
    bool production;
    bool read_only;
    struct store *store; /* NULL: the server cannot be reached */
    struct pawl_client *client;
    char *info; /* the text of INFO; "" if refused */
    json_t *findings;
    enum level worst;
    const char *step;
};

/* A heading; what follows belongs to it. */
void doctor_step(struct doctor *d, const char *id, const char *title);
/* What was seen, and what to do; @advice NULL or "": nothing. @id is a stable code. */
void doctor_find(struct doctor *d, enum level level, const char *id, const char *advice,
                 const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* A field of INFO; "" if it is not there. Valid until the next call. */
const char *doctor_info(const struct doctor *d, const char *field);
long long doctor_info_number(const struct doctor *d, const char *field);
/* A setting by CONFIG GET. 0, or -1 if it is not permitted or does not exist. */
int doctor_config(struct doctor *d, const char *name, char *value, size_t len);

/* The parts. */
void doctor_server(struct doctor *d); /* version, role, persistence, memory, clients */
void doctor_speed(struct doctor *d); /* latency, slow scripts, clock */
void doctor_rights(struct doctor *d); /* tries every command on a probe key */
void doctor_lock(struct doctor *d); /* key, owner, renewal */
void doctor_chain(struct doctor *d); /* who waits for whom */
void doctor_questions(struct doctor *d); /* what no tool can see */

#endif
