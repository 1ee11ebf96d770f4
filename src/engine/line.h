/* Lines: the waiters of this client that stand in the store's queue of one lock. Asks the store for
 * them, a few times a second and per lock, and passes on what it tells. On the loop. */
#ifndef PAWLI_ENGINE_LINE_H
#define PAWLI_ENGINE_LINE_H

#include <stdint.h>

struct pawl_client;
struct pawli_acquire;
struct pawli_answer;

/* Let the attempt that @a is about to send queue, if messages can be received: fills in inbox,
 * entry and ticket of its request. */
void pawli_line_prepare(struct pawli_acquire *a);

/* @a stands in the queue; twice is harmless. Without memory for a line @a has none, and must join
 * again. */
void pawli_line_join(struct pawli_acquire *a);
void pawli_line_leave(struct pawli_acquire *a);
/* It cannot be told of a grant any more; its entry is forgotten. */
void pawli_line_unlist(struct pawli_acquire *a);

/* Ask for @a at once. */
void pawli_line_check(struct pawli_acquire *a);

/* Before its limit is judged: tell @a whether the store answers. */
void pawli_line_news(struct pawli_acquire *a);

/* The lock was handed to the waiter with @hold_id; @sent_ns: of the request whose answer says so,
 * 0: a message. */
void pawli_line_granted(struct pawl_client *client, const char *hold_id, uint64_t token,
                        int64_t sent_ns);
/* The same from an answer, if it says so. */
void pawli_line_passed_on(struct pawl_client *client, const struct pawli_answer *answer,
                          int64_t sent_ns);

/* The lock of this name in the store may be free: ask at once if somebody waits for it. */
void pawli_line_freed(struct pawl_client *client, const char *name, size_t name_len);

/* Ask for all at once: messages may have been missed. */
void pawli_lines_check(struct pawl_client *client);
/* The inbox is new: listen for all. */
void pawli_lines_listen(struct pawl_client *client);

#endif
