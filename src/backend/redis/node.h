/* One Redis server as the backend sees it: its connection and the requests on it. Private to this
 * folder: node.c answers the engine, conn.c connects, login.c logs in. */
#ifndef PAWLI_REDIS_NODE_H
#define PAWLI_REDIS_NODE_H

#include <hiredis/hiredis.h>

#include "backend/backend.h"
#include "backend/redis/offset.h"
#include "backend/redis/url.h"
#include "backend/redis/wire.h"
#include "core/backoff.h"
#include "net/resolve.h"
#include "net/stream.h"
#include "util/buf.h"

enum pawli_redis_state {
    PAWLI_REDIS_DOWN,       /* until the next attempt */
    PAWLI_REDIS_RESOLVING,  /* name to addresses */
    PAWLI_REDIS_CONNECTING, /* to one of them */
    PAWLI_REDIS_TLS,        /* handshake */
    PAWLI_REDIS_LOGIN,
    PAWLI_REDIS_READY,
    PAWLI_REDIS_CLOSED
};

/* Commands of a login, in the order in which they are sent. */
enum pawli_redis_login_step {
    PAWLI_LOGIN_AUTH,
    PAWLI_LOGIN_SELECT,
    PAWLI_LOGIN_SETNAME,
    PAWLI_LOGIN_TIME,
    PAWLI_LOGIN_ROLE,
    PAWLI_LOGIN_SERVER,
    PAWLI_LOGIN_MEMORY,
    PAWLI_LOGIN_PROBE,
    PAWLI_LOGIN_STEPS
};

#define PAWLI_REDIS_DETAIL 256

struct pawli_node {
    struct pawli_loop *loop;
    const struct pawl_client_options *opts;
    struct pawli_node_events events;
    struct pawli_redis_url url;

    enum pawli_redis_state state;
    bool at_once;  /* the next attempt is due: requests wait for it */
    int why; /* not usable; PAWL_BUSY: not known yet */
    char detail[PAWLI_REDIS_DETAIL];
    struct pawli_backoff backoff;
    struct pawli_timer timer; /* next attempt, or deadline of what is under way */

    /* the attempt */
    int64_t attempt_deadline_ns;
    struct pawli_resolve *resolve;   /* kept over attempts until it has answered */
    const struct addrinfo *addr;     /* the one being tried */
    size_t n_addrs;                  /* it and those behind it */
    enum pawli_redis_login_step steps[PAWLI_LOGIN_STEPS];
    size_t n_steps;
    size_t step;
    int64_t login_sent_ns;
    bool heard;    /* the peer has said something */

    /* the connection */
    struct pawli_stream stream;
    struct pawli_watch watch;
    struct pawli_buf out;
    struct pawli_replies replies;
    uint64_t n_queued; /* bytes ever appended on this connection */
    uint64_t n_handed; /* of which the kernel has taken */
    bool blocked;      /* until the descriptor takes more */
    int64_t ready_ns;

    /* requests */
    struct pawli_list waiting;  /* for a connection that is being made, or for answers to others */
    struct pawli_list inflight; /* in the order of their frames */
    size_t n_inflight;
    struct pawli_list answered; /* done is called in the next turn */
    struct pawli_timer soon;
    struct pawli_offset offset;
    int64_t last_not_after_us; /* the latest that was ever sent */
    struct pawli_node_stats stats;

    /* the inbox, see inbox.c */
    struct pawli_node *inbox;  /* NULL: not asked for yet */
    char *inbox_name;
    bool inbox_up;             /* subscribed, or refused for good */
    bool inbox_refused;
    struct pawli_node *parent; /* not NULL: this node is the inbox of that one */
    int64_t inbox_deadline_ns; /* of the subscription or ping under way */
};

/* ---- node.c ---- */

/* A node that is DOWN, with its timers reserved; NULL: out of memory. */
struct pawli_node *pawli_redis_node_new(struct pawli_loop *loop,
                                        const struct pawl_client_options *opts);
void pawli_redis_node_free(struct pawli_node *node);

void pawli_redis_log(struct pawli_node *node, enum pawl_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The node became usable: send what waits. */
void pawli_redis_usable(struct pawli_node *node);
/* An attempt failed: answer what waits. */
void pawli_redis_unusable(struct pawli_node *node);
/* The usable connection is gone: answer what was on it. */
void pawli_redis_cut(struct pawli_node *node);
/* A whole reply arrived on the usable connection. 0, or why the connection must be dropped. */
int pawli_redis_replied(struct pawli_node *node, redisReply *reply);
/* The first request in flight has had its time. */
int64_t pawli_redis_deadline_ns(const struct pawli_node *node);
/* The server told its time. */
void pawli_redis_saw_time(struct pawli_node *node, int64_t server_us, int64_t sent_ns);

/* ---- conn.c ---- */

void pawli_redis_attempt(struct pawli_node *node);
void pawli_redis_timer(struct pawli_timer *timer);
void pawli_redis_write(struct pawli_node *node);
void pawli_redis_ready(struct pawli_watch *watched, unsigned what);
/* Close the connection and forget what was on it. */
void pawli_redis_hang_up(struct pawli_node *node, bool reset);
/* Say why something failed; returns @code. */
int pawli_redis_why(struct pawli_node *node, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* ---- inbox.c ---- */

/* The inbox' name once messages can be received, else NULL; begins to set it up. */
const char *pawli_redis_inbox(struct pawli_node *node);
/* See struct pawli_backend. */
void pawli_redis_listen(struct pawli_node *node, const struct pawli_key *key, bool on);
void pawli_redis_inbox_close(struct pawli_node *node);
/* What came on the inbox connection. 0, or why it must be dropped. */
int pawli_redis_inbox_reply(struct pawli_node *inbox, const redisReply *reply);

/* ---- login.c ---- */

/* Append the login to @out. 0 or a failure. */
int pawli_redis_login(struct pawli_node *node);
/* The reply to the next step. 1: logged in, 0: more to come, negative: failed. */
int pawli_redis_login_reply(struct pawli_node *node, redisReply *reply);
#endif
