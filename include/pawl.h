/* pawl.h: a distributed lock whose life follows the work that it protects.
 *
 * This is the whole public interface of libpawl. Words used the same way everywhere:
 *   borrows  the library uses it, and says until when
 *   copies   it is yours again when the call returns
 *   takes    the library frees it, also on failure unless said
 *   gives    you free it, and the text says with what
 *
 * Results: 0 is done, positive is an answer (PAWL_BUSY, PAWL_TIMEOUT, ...), negative is a failure.
 * What to do about a failure follows from its class, see pawl_result_class().
 *
 * Times are milliseconds in int64_t and their names end in _ms. Keys are bytes with a length.
 *
 * Threads: every call may be made from any thread unless it says otherwise. After fork() the
 * handles of the parent are dead in the child: calls answer PAWL_EFORKED and touch nothing.
 *
 * The library installs no signal handlers, raises no SIGPIPE, sets no locale and prints nothing.
 */
#ifndef PAWL_H
#define PAWL_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_VERSION_MAJOR 0
#define PAWL_VERSION_MINOR 1
#define PAWL_VERSION_PATCH 0
#define PAWL_VERSION "0.1.0"

/* The version of the library that is running, as "major.minor.patch". Static text. */
const char *pawl_version(void);

/* ---------------------------------------------------------------------------------------------
 * Results
 * ------------------------------------------------------------------------------------------- */

/* What a caller does about a result. */
enum pawl_class {
    PAWL_CLASS_ANSWER,      /* not a failure: the question was answered */
    PAWL_CLASS_USAGE,       /* the program is wrong; trying again will not help */
    PAWL_CLASS_REFUSED,     /* certainly not executed; may be tried again */
    PAWL_CLASS_UNAVAILABLE, /* the store could not be reached; certainly not executed */
    PAWL_CLASS_DENIED,      /* credentials or rights; an operator must act */
    PAWL_CLASS_UNKNOWN      /* may have executed; pawl cleans up behind, see the call */
};

/* Every result: X(name, number, class, sentence). Numbers never change once released. */
#define PAWL_RESULT_MAP(X)                                                                        \
    X(OK, 0, ANSWER, "done")                                                                      \
    X(BUSY, 1, ANSWER, "another owner holds the lock")                                            \
    X(TIMEOUT, 2, ANSWER, "the wait limit passed while another owner held the lock")              \
    X(CANCELED, 3, ANSWER, "the wait was canceled")                                               \
    X(STILL_HELD, 4, ANSWER, "released once; the same owner still holds the lock")                \
    X(NOT_OWNER, 5, ANSWER, "this handle does not hold the lock")                                 \
    X(FREE, 6, ANSWER, "nobody holds the lock")                                                   \
    X(STALE, 7, ANSWER, "a newer holder has claimed the resource")                                \
    X(UNSURE, 8, ANSWER, "a clock jumped; the lock is being confirmed with the store")            \
    X(EXPIRING, 9, ANSWER, "the maximum hold time is reached; stop now, the grace is running")    \
    X(LOST_TAKEN, 10, ANSWER, "lost: the store no longer knows this hold")                        \
    X(LOST_EXPIRED, 11, ANSWER, "lost: the lease ended before it was renewed")                    \
    X(LOST_UNREACHABLE, 12, ANSWER, "lost: the store could not be reached to renew the lease")    \
    X(LOST_MAX_HOLD, 13, ANSWER, "lost: the maximum hold time and its grace are over")            \
    X(LOST_REVOKED, 14, ANSWER, "lost: an operator revoked the lock")                             \
    X(EUSAGE, -1, USAGE, "an argument is missing or wrong")                                       \
    X(ERANGE, -2, USAGE, "a number is outside its range")                                         \
    X(EURL, -3, USAGE, "the URL cannot be used")                                                  \
    X(EKEY, -4, USAGE, "the lock name cannot be used")                                            \
    X(EOWNER, -5, USAGE, "the owner cannot be used")                                              \
    X(EFORKED, -6, USAGE, "this handle belongs to the parent process")                            \
    X(ECLOSED, -7, USAGE, "the client is closed")                                                 \
    X(EWRONGTYPE, -8, USAGE, "the key holds something that is not a lock")                        \
    X(ENESTED, -9, USAGE, "only the outermost hold may do this")                                  \
    X(ESECRET, -10, USAGE, "the password could not be read")                                      \
    X(ENOMEM, -20, REFUSED, "out of memory")                                                      \
    X(ESYSTEM, -21, REFUSED, "the operating system refused a thread, descriptor or random bytes") \
    X(ESCRIPTBUSY, -22, REFUSED, "the server is busy running a script")                           \
    X(ELOADING, -23, REFUSED, "the server is loading its data")                                   \
    X(EOOM, -24, REFUSED, "the server is at its memory limit")                                    \
    X(EMISCONF, -25, REFUSED, "the server refuses writes because it cannot save")                 \
    X(EREADONLY, -26, REFUSED, "the server has become a read-only replica")                       \
    X(ENOREPLICAS, -27, REFUSED, "the server has too few replicas to accept writes")              \
    X(EMOVED, -28, REFUSED, "the key lives on another cluster node")                              \
    X(EASK, -29, REFUSED, "the key is moving to another cluster node")                            \
    X(ETRYAGAIN, -30, REFUSED, "the keys are being moved between cluster nodes")                  \
    X(ECLUSTERDOWN, -31, REFUSED, "the cluster is down")                                          \
    X(EMASTERDOWN, -32, REFUSED, "the replica has lost its master")                               \
    X(ELATE, -33, REFUSED, "the request reached the server after its deadline")                   \
    X(EQUEUEFULL, -34, REFUSED, "too many callers already wait for this lock")                    \
    X(ESERVER, -35, REFUSED, "the server refused the request")                                    \
    X(ECONNECT, -50, UNAVAILABLE, "the store cannot be reached")                                  \
    X(ERESOLVE, -51, UNAVAILABLE, "the store's host name does not resolve")                       \
    X(ETLS, -52, UNAVAILABLE, "the encrypted connection could not be set up")                     \
    X(EREPLICA, -53, UNAVAILABLE, "the only address given is a replica")                          \
    X(EVERSION, -54, UNAVAILABLE, "the server is older than Redis 6.0")                           \
    X(EPROTOCOL, -55, UNAVAILABLE, "the peer does not speak the Redis protocol")                  \
    X(EAUTH, -70, DENIED, "user name or password are wrong")                                      \
    X(ENOAUTH, -71, DENIED, "the server asks for a password")                                     \
    X(ENOPERM, -72, DENIED, "the user lacks a right that pawl needs")                             \
    X(ENOSCRIPTING, -73, DENIED, "the server does not allow scripts")                             \
    X(EUNKNOWN, -90, UNKNOWN, "no answer in time; the request may have been executed")            \
    X(ESCRIPT, -91, UNKNOWN, "a script failed half-way on the server")

enum pawl_result {
#define PAWL_RESULT_ENUM(name, number, class_, text) PAWL_##name = (number),
    PAWL_RESULT_MAP(PAWL_RESULT_ENUM)
#undef PAWL_RESULT_ENUM
};

/* The sentence, the name ("PAWL_BUSY") and the class of a result. Static text; a number that no
 * call returns gives "unknown result", "PAWL_?" and PAWL_CLASS_USAGE. */
const char *pawl_result_text(int result);
const char *pawl_result_name(int result);
enum pawl_class pawl_result_class(int result);

/* What was behind the last failure on this thread: names the value and the rule, or repeats what
 * the server said. Never contains a password or a hold id. Set by a call that fails, and just
 * before a completion with a failure runs; valid until the next pawl call on this thread. Never
 * NULL; "" if nothing failed yet. */
const char *pawl_error_detail(void);

/* True for every PAWL_LOST_... */
static inline int pawl_is_lost(int result)
{
    return result >= PAWL_LOST_TAKEN && result <= PAWL_LOST_REVOKED;
}

/* ---------------------------------------------------------------------------------------------
 * Limits
 * ------------------------------------------------------------------------------------------- */

#define PAWL_KEY_MAX 512           /* bytes of a lock name together with the prefix */
#define PAWL_LABEL_MAX 96          /* bytes of an owner's label */
#define PAWL_LEASE_MIN_MS 100      /* a shorter lease dies of ordinary jitter */
#define PAWL_LEASE_MAX_MS 3600000  /* 1 h */
#define PAWL_WAIT_MAX_MS 604800000 /* 7 days; or PAWL_FOREVER */
#define PAWL_MAX_HOLD_MAX_MS 2592000000 /* 30 days; or PAWL_UNLIMITED */

#define PAWL_DEFAULT INT64_MIN /* take the client's default */
#define PAWL_FOREVER (-1)      /* wait_ms: no limit */
#define PAWL_UNLIMITED (-1)    /* max_hold_ms: no limit; must be said */

/* ---------------------------------------------------------------------------------------------
 * Client
 * ------------------------------------------------------------------------------------------- */

struct pawl_client;
struct pawl_owner;
struct pawl_lock;

enum pawl_log_level { PAWL_LOG_ERROR, PAWL_LOG_WARN, PAWL_LOG_INFO, PAWL_LOG_DEBUG };

/* One line without a newline, without secrets. Runs on pawl's callback thread; @line is borrowed
 * by you until you return. Must not call pawl_client_close(). */
typedef void (*pawl_log_cb)(void *arg, enum pawl_log_level level, const char *line);

/* Client flags. */
#define PAWL_TLS_INSECURE 1u /* accept any certificate; logged as a warning at every connection */
/* Share locks with Redisson's RLock so that both wake each other: a release frees the lock instead
 * of handing it to the first waiter, tells Redisson's channel and that waiter, and who comes first
 * has it; a waiter also listens on Redisson's channel. Order holds among pawl's waiters only. Set
 * it in all clients that share these locks. Source: docs/protocol.md, "Redisson". */
#define PAWL_INTEROP_REDISSON 2u
#define PAWL_CLIENT_FLAGS_ALL (PAWL_TLS_INSECURE | PAWL_INTEROP_REDISSON)

/* All text is copied by pawl_client_open(). Start from PAWL_CLIENT_OPTIONS_INIT. */
struct pawl_client_options {
    size_t size;              /* sizeof(struct pawl_client_options) */
    const char *name;         /* shown by CLIENT LIST and to operators; printable, at most 32
                                 bytes; NULL: the program's name */
    const char *prefix;       /* put before every lock name; printable; NULL: none */
    const char *username;     /* overrides the URL's; NULL: the URL's */
    const char *password;     /* overrides the URL's; wiped from memory at close */
    const char *password_env; /* name of an environment variable that holds the password */
    const char *password_file; /* a file whose first line is the password; read at each connect */
    const char *ca_file;      /* PEM; NULL: the system's authorities */
    const char *cert_file;    /* PEM client certificate, with key_file */
    const char *key_file;
    const char *server_name;  /* name that the certificate must carry; NULL: the URL's host */
    unsigned flags;           /* PAWL_TLS_INSECURE, PAWL_INTEROP_REDISSON */
    int log_level;            /* least important level that is logged; PAWL_LOG_WARN */
    pawl_log_cb log;          /* NULL: nothing is logged */
    void *log_arg;
    int64_t connect_ms;       /* 100 to 60000; 2000. Name, connection, TLS, login together */
    int64_t command_ms;       /* 50 to 60000; 1000. After that the connection is given up */
    int64_t release_ms;       /* 0 to 60000; 1000. How long a release waits for its answer */
    int64_t retry_min_ms;     /* 10 to 60000; 50. First delay between two tries, with jitter */
    int64_t retry_max_ms;     /* retry_min_ms to 60000; 1000. The delay grows up to this */
    int64_t lease_ms;         /* defaults for struct pawl_lock_options: 30000 */
    int64_t wait_ms;          /* 5000 */
    int64_t max_hold_ms;      /* 180000 */
    int64_t grace_ms;         /* 5000 */
};

#define PAWL_CLIENT_OPTIONS_INIT                                                                  \
    {                                                                                             \
        sizeof(struct pawl_client_options), NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, \
            NULL, 0u, PAWL_LOG_WARN, NULL, NULL, 2000, 1000, 1000, 50, 1000, 30000, 5000, 180000, \
            5000                                                                                  \
    }

/* Open a client. Checks the URL and the options, starts the engine thread, and begins to connect;
 * it does not wait for the server, so that a service can start while its store is down. To learn
 * whether the store can be used, call pawl_client_ready().
 *
 * @url   copied. redis://[user[:password]@]host[:port][/db], rediss://... (TLS, certificate and
 *        host name checked), redis+unix:///path[?db=N]. Port 6379 and database 0 unless said.
 *        Percent-encode what is special in a user name or password.
 * @opts  copied; NULL: all defaults.
 *
 * Returns 0; PAWL_EURL, PAWL_ERANGE, PAWL_EUSAGE (pawl_error_detail() names value and rule),
 * PAWL_ESECRET, PAWL_ENOMEM, PAWL_ESYSTEM. Gives *ret_client: free with pawl_client_close().
 * One client serves all threads of a process over one command connection. */
int pawl_client_open(const char *url, const struct pawl_client_options *opts,
                     struct pawl_client **ret_client);

/* Wait until the store is connected, logged in and known to be usable.
 *
 * @wait_ms  0 to PAWL_WAIT_MAX_MS; 0 answers at once from what is known.
 * Returns 0, or the reason why not: a failure of class UNAVAILABLE, DENIED or REFUSED. */
int pawl_client_ready(struct pawl_client *client, int64_t wait_ms);

/* Release what the client holds (within release_ms), end waits with PAWL_ECLOSED, stop its threads
 * and free it. Completions that were not dispatched run inside this call. Lock handles stay valid
 * memory until pawl_lock_free(), and answer PAWL_ECLOSED. NULL is allowed. In a forked child it
 * does nothing. Not from inside a callback of this client. */
void pawl_client_close(struct pawl_client *client);

/* A descriptor that is readable while there is something for pawl_client_dispatch() to do: answers
 * that wait, or bytes from the store, which the dispatch then reads without waking another
 * thread. For poll, epoll or any event loop, level-triggered; do not read from it. It belongs to
 * the client. PAWL_EFORKED after a fork. */
int pawl_client_fd(const struct pawl_client *client);

/* Run the completions that are waiting, on this thread. Returns how many ran (also 0), or a
 * failure. From inside a completion it runs nothing. A loop that is late with it delays its own
 * completions only: renewals and other callers have the engine thread. */
int pawl_client_dispatch(struct pawl_client *client);

/* ---------------------------------------------------------------------------------------------
 * Owner: who holds. Made once per request and passed down the call chain. The same owner may take
 * the same lock again, from any thread; only its last release frees the lock.
 * ------------------------------------------------------------------------------------------- */

#define PAWL_OWNER_TEXT_MAX (32 + 1 + PAWL_LABEL_MAX)

/* Make an owner: 128 random bits, and a label for people.
 *
 * @label  copied; NULL or "": none. Printable ASCII or UTF-8 without control characters, at most
 *         PAWL_LABEL_MAX bytes. Shown to operators: no secrets.
 * Returns 0, PAWL_EOWNER (label), PAWL_ENOMEM, PAWL_ESYSTEM. Gives *ret_owner, to be freed with
 * pawl_owner_free(). */
int pawl_owner_new(const char *label, struct pawl_owner **ret_owner);

/* The owner that @text names, as pawl_owner_text() printed it: 32 hex digits, optionally ':' and
 * a label. For passing an owner to another process. Results as pawl_owner_new(). */
int pawl_owner_parse(const char *text, struct pawl_owner **ret_owner);

/* Another handle of the same owner. Returns 0 or PAWL_ENOMEM. Gives *ret_owner. */
int pawl_owner_copy(const struct pawl_owner *owner, struct pawl_owner **ret_owner);

/* Its text; belongs to the owner. */
const char *pawl_owner_text(const struct pawl_owner *owner);

/* NULL is allowed. Locks that it holds are not touched. */
void pawl_owner_free(struct pawl_owner *owner);

/* The current owner of this thread, for code that cannot pass one: acquires without an owner use
 * it until the matching leave. Scopes nest, at most 32 deep. @owner is borrowed until the leave.
 * Trap: on an event loop one thread serves many requests, and the next one would inherit the
 * owner; pass owners explicitly there. Returns 0, or PAWL_EUSAGE (NULL, or too deep). */
int pawl_owner_enter(const struct pawl_owner *owner);
/* Ends the innermost scope of this thread. PAWL_EUSAGE if there is none. */
int pawl_owner_leave(void);

/* ---------------------------------------------------------------------------------------------
 * Lock: one hold, from its grant to its release
 * ------------------------------------------------------------------------------------------- */

/* What happens to a hold, in this order, each at most once except AT_RISK and RECOVERED. */
enum pawl_event {
    PAWL_EVENT_AT_RISK,   /* renewals fail and the lease nears its end; result is the failure */
    PAWL_EVENT_RECOVERED, /* withdraws AT_RISK: a renewal succeeded; result is 0 */
    PAWL_EVENT_EXPIRING,  /* maximum hold reached: stop; result is PAWL_EXPIRING */
    PAWL_EVENT_LOST       /* the lock is gone; result is a PAWL_LOST_... */
};

/* Runs on pawl's callback thread, never on the engine. @lock is borrowed. May call anything but
 * pawl_client_close(). After pawl_lock_free() has returned, it does not run any more. */
typedef void (*pawl_event_cb)(void *arg, struct pawl_lock *lock, enum pawl_event event,
                              int result);

/* Lock flags. */
#define PAWL_NO_RENEW 1u /* no watchdog: the lease is the end */
/* May take a lock that it finds free before those who wait for it. A release hands the lock to the
 * first waiter, so it is found free only after an expiry or a deletion: each of these lets one
 * caller overtake. */
#define PAWL_BARGING 2u
#define PAWL_LOCK_FLAGS_ALL (PAWL_NO_RENEW | PAWL_BARGING)

/* Start from PAWL_LOCK_OPTIONS_INIT. */
struct pawl_lock_options {
    size_t size;                    /* sizeof(struct pawl_lock_options) */
    const struct pawl_owner *owner; /* copied; NULL: this thread's current owner, else a new one */
    int64_t lease_ms;    /* PAWL_LEASE_MIN_MS to PAWL_LEASE_MAX_MS. Renewed every third of it. */
    int64_t wait_ms;     /* 0: one try; to PAWL_WAIT_MAX_MS; or PAWL_FOREVER */
    int64_t max_hold_ms; /* lease_ms to PAWL_MAX_HOLD_MAX_MS; or PAWL_UNLIMITED. Then the task is
                            told, and after the grace the lock is released by force. The client's
                            default grows to lease_ms if that is longer. */
    int64_t grace_ms;    /* 0 to 60000; in effect never more than lease_ms / 3 */
    unsigned flags;      /* PAWL_NO_RENEW, PAWL_BARGING */
    pawl_event_cb on_event; /* NULL: none */
    void *on_event_arg;
};

#define PAWL_LOCK_OPTIONS_INIT                                                                    \
    {                                                                                             \
        sizeof(struct pawl_lock_options), NULL, PAWL_DEFAULT, PAWL_DEFAULT, PAWL_DEFAULT,         \
            PAWL_DEFAULT, 0u, NULL, NULL                                                          \
    }

/* Take the lock, waiting up to the wait limit.
 *
 * @key      copied; @key_len 1 to PAWL_KEY_MAX bytes with the prefix, any bytes, used literally;
 *           names that begin with "pawl:" are refused.
 * @opts     copied; NULL: all defaults.
 *
 * Returns 0 and gives *ret_lock (free with pawl_lock_free(), which also releases); else *ret_lock
 * is untouched: PAWL_BUSY (wait_ms 0), PAWL_TIMEOUT (busy until the limit), PAWL_ECLOSED, a usage
 * failure before anything is sent (PAWL_EKEY, PAWL_ERANGE, PAWL_EUSAGE, PAWL_EWRONGTYPE after the
 * server looked), or, at the wait limit, the failure that stood in the way. After PAWL_EUNKNOWN a
 * grant may exist for nobody; pawl gives it back by itself, at the latest when its lease ends.
 * One try (wait_ms 0) takes at most connect_ms + command_ms. Trouble that may pass (class REFUSED
 * or UNAVAILABLE) is retried until the wait limit.
 * The lease counts from the moment of sending, less a margin for clock drift, so that this side
 * gives up before the server does. Source: docs/protocol.md, "acquire". */
int pawl_lock_acquire(struct pawl_client *client, const void *key, size_t key_len,
                      const struct pawl_lock_options *opts, struct pawl_lock **ret_lock);

/* Give this hold back. The lock is free when the owner's last hold is released.
 *
 * Waits up to the client's release_ms for the answer and goes on behind if there is none.
 * Returns 0 (free), PAWL_STILL_HELD (outer holds remain), PAWL_NOT_OWNER (already released),
 * a PAWL_LOST_... if it was lost before, or a failure: then the release is repeated behind until
 * the lease ends, and pawl_error_detail() says when that is at the latest.
 * The handle stays valid; free it with pawl_lock_free(). */
int pawl_lock_release(struct pawl_lock *lock);

/* Release without waiting, if still held, and free the handle. No callback of this lock runs after
 * it has returned (called from inside one, after that one). NULL is allowed. In a forked child it
 * does nothing. */
void pawl_lock_free(struct pawl_lock *lock);

/* Is it still mine, now? Reads the clock on this thread and no socket; costs tens of nanoseconds.
 * Returns 0 (held), PAWL_EXPIRING (held, but stop), PAWL_UNSURE, a PAWL_LOST_..., PAWL_NOT_OWNER
 * (released), PAWL_ECLOSED or PAWL_EFORKED. Between this answer and what you do next the process
 * may be paused: only the fencing token at the resource protects against that. */
int pawl_lock_check(struct pawl_lock *lock);

/* Milliseconds for which the lock is certainly held if no renewal succeeds any more; 0 if lost or
 * released. */
int64_t pawl_lock_remaining_ms(struct pawl_lock *lock);

/* Milliseconds until the maximum hold time; PAWL_UNLIMITED if there is none. */
int64_t pawl_lock_max_hold_remaining_ms(struct pawl_lock *lock);

/* The fencing token: rises with every new grant of the lock, the same on re-entry; above 0 and
 * below 2^53. Source: docs/protocol.md, "fencing token". */
uint64_t pawl_lock_token(const struct pawl_lock *lock);

/* How often this lock's owner holds it, as the store last told this client. */
int pawl_lock_count(const struct pawl_lock *lock);

/* Owner text and key of the lock; belong to the lock. The key is as it was given, without the
 * prefix, and not terminated. */
const char *pawl_lock_owner(const struct pawl_lock *lock);
const void *pawl_lock_key(const struct pawl_lock *lock, size_t *ret_len);

/* A descriptor that becomes readable once the hold is expiring or lost, and stays so. Made at the
 * first call; belongs to the lock. Returns it, or PAWL_ESYSTEM, PAWL_EFORKED, PAWL_ECLOSED. */
int pawl_lock_fd(struct pawl_lock *lock);

/* Set a new lease from now on, also a shorter one. Outermost hold only (else PAWL_ENESTED); never
 * past the maximum hold. @lease_ms as in the options. Returns 0, PAWL_NOT_OWNER, PAWL_LOST_..., or
 * a failure: then the lease is as before, or (PAWL_EUNKNOWN) the shorter of both is believed. */
int pawl_lock_extend(struct pawl_lock *lock, int64_t lease_ms);

#if defined(__GNUC__) || defined(__clang__)
static inline void pawl_lock_cleanup_(struct pawl_lock **lock)
{
    pawl_lock_free(*lock);
}
/* PAWL_SCOPED struct pawl_lock *lock = NULL;
 * frees (and so releases) the lock when its block ends, on every path. */
#define PAWL_SCOPED __attribute__((cleanup(pawl_lock_cleanup_)))
#endif

/* ---------------------------------------------------------------------------------------------
 * The same without blocking. Completions are delivered by pawl_client_dispatch(), exactly once
 * each, never from inside the call that asked. If a call returns a failure, its completion is not
 * called.
 * ------------------------------------------------------------------------------------------- */

/* @lock is given if @result is 0 (free with pawl_lock_free()), else NULL. */
typedef void (*pawl_acquire_cb)(void *arg, int result, struct pawl_lock *lock);
typedef void (*pawl_done_cb)(void *arg, int result);

/* Ask for the lock; arguments and results as pawl_lock_acquire(). @ret_id, if not NULL, gets a
 * number for pawl_cancel(). Returns 0 if asked, else a usage failure or PAWL_ENOMEM. */
int pawl_lock_acquire_async(struct pawl_client *client, const void *key, size_t key_len,
                            const struct pawl_lock_options *opts, pawl_acquire_cb cb, void *arg,
                            uint64_t *ret_id);

/* Stop waiting: the completion gets PAWL_CANCELED at once, whatever the store does; a grant that
 * is on its way is given back. Returns 0, or PAWL_NOT_OWNER if the result is already on its way to
 * its completion (which then gets that result). */
int pawl_cancel(struct pawl_client *client, uint64_t id);

/* As pawl_lock_release() and pawl_lock_extend(), whose results @cb gets. Return 0 if asked, else a
 * failure; extend also what pawl_lock_check() says of a hold that is lost or released. @lock may be
 * freed at once. @cb may be NULL for a release whose result nobody needs. */
int pawl_lock_release_async(struct pawl_lock *lock, pawl_done_cb cb, void *arg);
int pawl_lock_extend_async(struct pawl_lock *lock, int64_t lease_ms, pawl_done_cb cb, void *arg);

/* ---------------------------------------------------------------------------------------------
 * For operators
 * ------------------------------------------------------------------------------------------- */

enum pawl_lock_kind {
    PAWL_KIND_PAWL,   /* taken by pawl */
    PAWL_KIND_HASH,   /* hash of owner and count by another client (Redisson, a Lua recipe) */
    PAWL_KIND_STRING  /* SET NX PX by another client */
};

struct pawl_waiter_info {
    const char *owner;
    const char *host;
    int64_t pid;
    int64_t waiting_ms;
};

/* Text belongs to the info and is printable. What is not known is "", 0 or -1. */
struct pawl_lock_info {
    size_t size;
    enum pawl_lock_kind kind;
    const char *owner;      /* its text; of a string lock the value, shortened */
    int64_t count;          /* how often the owner holds it; of a foreign hash as it says */
    int64_t n_owners;       /* more than 1 is a broken lock */
    uint64_t token;
    int64_t remaining_ms;   /* until the store frees it; -1: never (no expiry, an alarm) */
    int64_t lease_ms;
    int64_t since_ms;       /* server time of the grant, ms since 1970 */
    int64_t held_ms;
    int64_t latest_end_ms;  /* server time at which the store lets go at the latest: maximum hold
                               and grace; 0: never while it is renewed */
    int revoked;            /* force-released: goes when the lease ends */
    const char *host;
    int64_t pid;
    int64_t process_start;  /* ticks since boot, field 22 of /proc/PID/stat */
    const char *boot_id;    /* first digits of the host's boot id */
    size_t n_waiters;
    size_t n_listed;        /* of these, in order: at most 100 */
    const struct pawl_waiter_info *waiters;
};

/* Who holds it, how often, since when, and who waits. Never shows hold ids.
 * Returns 0 and gives *ret_info (free with pawl_lock_info_free()), PAWL_FREE, or a failure. */
int pawl_inspect(struct pawl_client *client, const void *key, size_t key_len,
                 struct pawl_lock_info **ret_info);
void pawl_lock_info_free(struct pawl_lock_info *info);

/* @info is given if @result is 0. */
typedef void (*pawl_inspect_cb)(void *arg, int result, struct pawl_lock_info *info);
int pawl_inspect_async(struct pawl_client *client, const void *key, size_t key_len,
                       pawl_inspect_cb cb, void *arg);

/* Pass the lock on at once: the old holder may believe in it for up to a third of its lease more;
 * only fencing protects the resource then. */
#define PAWL_FORCE_NOW 1u

/* Take the lock away from its holder. By default it is revoked: renewals are refused, the holder
 * learns of it at its next one, and the lock passes on when the lease ends.
 *
 * @token  only if the lock still has this token; 0: whatever it has.
 * @flags  0 or PAWL_FORCE_NOW. Locks of other clients have no revocation: PAWL_FORCE_NOW only.
 * Returns 0, PAWL_FREE, PAWL_NOT_OWNER (another token), or a failure. */
int pawl_force_release(struct pawl_client *client, const void *key, size_t key_len, uint64_t token,
                       unsigned flags);
int pawl_force_release_async(struct pawl_client *client, const void *key, size_t key_len,
                             uint64_t token, unsigned flags, pawl_done_cb cb, void *arg);

/* ---------------------------------------------------------------------------------------------
 * Fencing at the resource: claim first, then read, then write if still mine. "Refuse lower tokens"
 * alone is not enough: a stale writer may slip in between the new holder's read and write.
 * ------------------------------------------------------------------------------------------- */

/* For a resource in a SQL database: the statements, for you to prepare with your own driver.
 * Parameters in this order: resource name, token (64-bit integer), owner text.
 *   TABLE   creates the table pawl_fence (no parameters)
 *   CLAIM   run first, in its own transaction or at the start of yours: 1 row changed means
 *           claimed, 0 rows a newer holder has claimed (PAWL_STALE)
 *   CHECK   run as the last statement before commit of the writing transaction: 1 row changed
 *           means still mine, 0 rows stale: roll back
 * Source: docs/guide.md, "Fencing". */
enum pawl_sql_dialect { PAWL_SQL_SQLITE, PAWL_SQL_POSTGRESQL };
enum pawl_sql_statement { PAWL_SQL_TABLE, PAWL_SQL_CLAIM, PAWL_SQL_CHECK };
/* Static text; NULL for a number that is none of the above. */
const char *pawl_fence_sql(enum pawl_sql_dialect dialect, enum pawl_sql_statement statement);

/* For a resource in the same Redis: @resource is a string key that pawl_fence_set() writes; the
 * claim is kept beside it, in "pawl:c:{tag}:" + resource, without an expiry as long as the
 * resource may be written under a lock. Keys as in pawl_lock_acquire().
 * Returns 0, PAWL_STALE, or a failure. */
int pawl_fence_claim(struct pawl_lock *lock, const void *resource, size_t resource_len);
/* SET @resource to @value if this lock's claim is still the newest. */
int pawl_fence_set(struct pawl_lock *lock, const void *resource, size_t resource_len,
                   const void *value, size_t value_len);

/* ---------------------------------------------------------------------------------------------
 * Statistics
 * ------------------------------------------------------------------------------------------- */

/* Histogram of durations: bucket i counts those up to pawl_hist_bound_ms(i), the last one the
 * rest. 1, 2, 5, 10, 20, 50, ... 500000 ms. */
#define PAWL_HIST_BUCKETS 19
struct pawl_hist {
    uint64_t bucket[PAWL_HIST_BUCKETS];
    uint64_t count;
    uint64_t sum_ms;
};
/* -1 for the last bucket and beyond. */
int64_t pawl_hist_bound_ms(int bucket);

/* Counters since the client was opened; held and waiting are of now. */
struct pawl_stats {
    size_t size;
    uint64_t acquires;      /* granted */
    uint64_t reentries;     /* of these, while the owner already held the lock */
    uint64_t waits;         /* acquires that met a busy lock */
    uint64_t busy;          /* answered BUSY or TIMEOUT */
    uint64_t canceled;
    uint64_t failed;        /* acquires answered with a failure */
    uint64_t releases;
    uint64_t renewals;      /* successful, counted per lock */
    uint64_t late_renewals; /* successful after more than half of the lease */
    uint64_t failed_renewals;
    uint64_t lost_taken;
    uint64_t lost_expired;
    uint64_t lost_unreachable;
    uint64_t lost_max_hold;
    uint64_t lost_revoked;
    uint64_t connects;      /* connections that became usable */
    uint64_t commands;      /* sent */
    uint64_t held;
    uint64_t waiting;
    struct pawl_hist wait_ms; /* from the call to its grant */
    struct pawl_hist hold_ms; /* from the grant to release or loss */
};

/* Set @ret_stats->size before the call. Returns 0 or PAWL_EUSAGE. */
int pawl_client_stats(struct pawl_client *client, struct pawl_stats *ret_stats);

#ifdef __cplusplus
}
#endif

#endif
