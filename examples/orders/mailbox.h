/* mailbox.h: the way from other threads (database worker, pawl's callback thread) to the loop. */
#ifndef ORDERS_MAILBOX_H
#define ORDERS_MAILBOX_H

struct event_base;
struct mailbox;

/* Embedded in whatever wants to run on the loop; zero it before its first use. */
struct mail {
    struct mail *next;
    int queued;
    void (*run)(struct mail *mail);
};

/* Returns 0 and gives *ret_box (free with mailbox_free()), or -1. */
int mailbox_new(struct event_base *base, struct mailbox **ret_box);
void mailbox_free(struct mailbox *box);

/* Have @mail run on the loop. Any thread; a mail that is already queued stays queued once. */
void mailbox_post(struct mailbox *box, struct mail *mail);

/* Take @mail out again if it has not run. Loop thread only. */
void mailbox_cancel(struct mailbox *box, struct mail *mail);

#endif
