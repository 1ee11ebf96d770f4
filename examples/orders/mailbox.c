/* mailbox.c: a list under a mutex and an eventfd that wakes the loop. */
#include "mailbox.h"

#include <event2/event.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct mailbox {
    pthread_mutex_t mutex;
    struct mail *head;
    struct mail **tail;
    struct event *wake;
    int fd;
};

static struct mail *mailbox_take(struct mailbox *box)
{
    struct mail *mail;

    pthread_mutex_lock(&box->mutex);
    mail = box->head;
    if (mail != NULL) {
        box->head = mail->next;
        if (box->head == NULL)
            box->tail = &box->head;
        mail->queued = 0;
    }
    pthread_mutex_unlock(&box->mutex);
    return mail;
}

static void on_wake(evutil_socket_t fd, short what, void *arg)
{
    struct mailbox *box = arg;
    struct mail *mail;
    uint64_t count;

    (void)what;
    if (read(fd, &count, sizeof count) < 0)
        return; /* woken for nothing */
    while ((mail = mailbox_take(box)) != NULL)
        mail->run(mail);
}

int mailbox_new(struct event_base *base, struct mailbox **ret_box)
{
    struct mailbox *box = calloc(1, sizeof *box);

    if (box == NULL)
        return -1;
    pthread_mutex_init(&box->mutex, NULL);
    box->tail = &box->head;
    box->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (box->fd < 0)
        goto fail;
    box->wake = event_new(base, box->fd, EV_READ | EV_PERSIST, on_wake, box);
    if (box->wake == NULL || event_add(box->wake, NULL) < 0)
        goto fail;
    *ret_box = box;
    return 0;

fail:
    mailbox_free(box);
    return -1;
}

void mailbox_free(struct mailbox *box)
{
    if (box == NULL)
        return;
    if (box->wake != NULL)
        event_free(box->wake);
    if (box->fd >= 0)
        close(box->fd);
    pthread_mutex_destroy(&box->mutex);
    free(box);
}

void mailbox_post(struct mailbox *box, struct mail *mail)
{
    const uint64_t one = 1;
    int was_empty = 0;

    pthread_mutex_lock(&box->mutex);
    if (!mail->queued) {
        was_empty = box->head == NULL;
        mail->queued = 1;
        mail->next = NULL;
        *box->tail = mail;
        box->tail = &mail->next;
    }
    pthread_mutex_unlock(&box->mutex);
    /* Only the first of a batch wakes the loop; an eventfd that is full is awake already. */
    if (was_empty && write(box->fd, &one, sizeof one) < 0)
        return;
}

void mailbox_cancel(struct mailbox *box, struct mail *mail)
{
    struct mail **link;

    pthread_mutex_lock(&box->mutex);
    for (link = &box->head; *link != NULL; link = &(*link)->next) {
        if (*link == mail) {
            *link = mail->next;
            if (*link == NULL)
                box->tail = link;
            mail->queued = 0;
            break;
        }
    }
    pthread_mutex_unlock(&box->mutex);
}
