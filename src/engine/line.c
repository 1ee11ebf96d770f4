/* Lines of this client's waiters; see line.h. */
#include "engine/line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/acquire.h"
#include "engine/client.h"
#include "engine/lock.h"

#define PERIOD_NS INT64_C(500000000) /* between two re-checks of a lock */
#define LINES_EASY 1000              /* up to so many locks are asked for that often */
#define NAMED_MAX 64                 /* waiters named by one re-check: the first in the line */

struct check;

struct pawli_line {
    struct pawl_client *client;
    struct pawli_map_node by_key;
    struct pawli_list link; /* in the client's lines */
    struct pawli_key *key;
    struct pawli_list waiters; /* struct pawli_acquire, as they joined */
    struct pawli_timer timer;
    int64_t period_ns;
    int64_t checking_ns; /* a re-check is unanswered since then; 0: none */
    bool again;          /* another one is wanted as soon as it is answered */
    int failure;         /* of the last one */
    struct check *check; /* on its way; NULL: none */
};

/* A re-check on its way. It keeps what it names: a waiter may go meanwhile. */
struct check {
    struct pawli_line *line; /* NULL: the line is gone */
    struct pawl_client *client;
    struct pawli_key *key;
    struct pawli_request req;
    struct pawli_check named[]; /* then the entries' texts */
};

static void look(struct pawli_line *line);

/* ---- waiters by hold id ---- */

static uint64_t hash_of_id(const char *id)
{
    return pawli_hash(PAWLI_HASH_START, id, PAWLI_ID_LEN);
}

static struct pawli_acquire *find(struct pawl_client *client, const char *id)
{
    struct pawli_map_node *node;

    for (node = pawli_map_first(&client->by_id, hash_of_id(id)); node != NULL;
         node = pawli_map_next(node)) {
        struct pawli_acquire *a = PAWLI_CONTAINER(node, struct pawli_acquire, by_id);

        if (memcmp(a->lock->hold_id, id, PAWLI_ID_LEN) == 0)
            return a;
    }
    return NULL;
}

void pawli_line_unlist(struct pawli_acquire *a)
{
    if (a->listed)
        pawli_map_remove(&a->call.client->by_id, &a->by_id);
    a->listed = false;
    free(a->entry);
    a->entry = NULL;
    a->entry_len = 0;
}

/* ---- entries ---- */

/* What stands in the queue for @a, the same for every attempt under one hold id; its form is at
 * the top of scripts/hand_over.inc.lua. The request has its other arguments by now. */
static int make_entry(struct pawli_acquire *a)
{
    const struct pawl_client *client = a->call.client;
    const struct pawl_lock *lock = a->lock;
    const struct pawli_lock_settings *set = &lock->settings;
    int64_t limit_ns = a->wait.limit_ns;
    int64_t deadline_us = 0;
    int64_t asked_us = client->backend->server_us(client->node, a->asked_ns);
    int len;

    if (limit_ns != PAWLI_NEVER)
        deadline_us = client->backend->server_us(client->node, limit_ns);
    len = asprintf(&a->entry, "w%s\n%s\n%lld\n%lld\n%lld\n%lld\n%s\n%s", lock->hold_id,
                   client->inbox, (long long)set->lease_ms, (long long)a->req.span_ms,
                   (long long)deadline_us, (long long)(asked_us / 1000), lock->owner->text,
                   client->who);
    if (len < 0) {
        a->entry = NULL;
        return PAWL_ENOMEM;
    }
    a->entry_len = (size_t)len;
    return 0;
}

void pawli_line_prepare(struct pawli_acquire *a)
{
    struct pawl_client *client = a->call.client;

    if (!client->inbox_up)
        return;
    if (a->entry == NULL && make_entry(a) < 0)
        return; /* this attempt does not queue; the next may */
    if (!a->listed) {
        if (pawli_map_add(&client->by_id, &a->by_id, hash_of_id(a->lock->hold_id)) < 0)
            return;
        a->listed = true;
    }
    a->req.inbox = client->inbox;
    a->req.entry = a->entry;
    a->req.entry_len = a->entry_len;
    /* A place that was missed too often is given up. */
    a->req.ticket = a->wait.missed > 3 ? 0 : a->ticket;
}

/* ---- re-checks ---- */

/* With very many locks to ask for, each is asked for less often, yet within the 1.5 s after which
 * the store takes the inbox for dead. */
static int64_t period_ns(struct pawli_line *line)
{
    const struct pawl_client *client = line->client;
    int64_t period = line->period_ns;

    if (client->n_lines > LINES_EASY && period == PERIOD_NS)
        period *= 2;
    return period - (int64_t)pawli_client_jitter(line->client, (uint64_t)period / 5 + 1);
}

static void arm(struct pawli_line *line, int64_t pttl_ms, bool head)
{
    struct pawli_loop *loop = line->client->loop;
    int64_t now_ns = pawli_loop_now_ns(loop);
    int64_t at_ns = now_ns + period_ns(line);

    /* Nobody acts when a lock expires, so the first in its queue looks in time. */
    if (head && pttl_ms >= 0 && now_ns + (pttl_ms + 1) * PAWLI_NS_PER_MS < at_ns)
        at_ns = now_ns + (pttl_ms + 1) * PAWLI_NS_PER_MS;
    pawli_loop_timer_set(loop, &line->timer, at_ns);
}

/* Tell one named waiter, if it is still the same that was named. */
static bool tell(struct check *check, size_t i)
{
    const struct pawli_check *named = &check->named[i];
    struct pawli_acquire *a = named->arg;
    struct pawli_wait_event ev = { .kind = PAWLI_WAIT_CHECKED,
                                   .code = named->code,
                                   .pttl_ms = check->req.answer.pttl_ms,
                                   .sent_ns = check->req.sent_ns };

    if (a->line != check->line || memcmp(a->lock->hold_id, named->hold_id, PAWLI_ID_LEN) != 0)
        return false;
    if (check->req.answer.code < 0)
        ev.code = check->req.answer.code;
    if (ev.code == 0 && pawli_clocks_jump_ns(check->client, ev.sent_ns, named->lease_ms) > 0)
        ev.code = PAWL_EUNKNOWN; /* granted, but the machine was frozen since: ask again */
    if (ev.code == 0)
        a->granted_token = named->token;
    pawli_acquire_step(a, &ev);
    return ev.code == PAWL_FREE;
}

static void checked(struct pawli_request *req)
{
    struct check *check = PAWLI_CONTAINER(req, struct check, req);
    struct pawl_client *client = check->client;
    struct pawli_line *line = check->line;
    bool lost_places = false;

    pawli_client_answered(client);
    if (line != NULL) {
        line->checking_ns = 0;
        line->failure = req->answer.code;
        arm(line, req->answer.pttl_ms, req->answer.head);
    }
    pawli_line_passed_on(client, &req->answer, req->sent_ns);
    for (size_t i = 0; i < check->req.n_checks; i++) {
        struct pawli_acquire *a = check->named[i].arg;

        if (check->line != NULL && !client->stopped)
            lost_places |= tell(check, i);
        pawli_call_unref(&a->call);
    }
    line = check->line; /* NULL: the last waiter has left it meanwhile */
    if (line != NULL) {
        line->check = NULL;
        if (line->again || lost_places)
            look(line);
    }
    pawli_key_unref(check->key);
    free(check);
}

/* @text is where the copy of its entry goes; returns the place behind it. */
static char *name(struct check *check, struct pawli_acquire *a, char *text)
{
    struct pawli_check *named = &check->named[check->req.n_checks++];

    memcpy(named->hold_id, a->lock->hold_id, sizeof named->hold_id);
    memcpy(text, a->entry, a->entry_len);
    named->owner = a->lock->owner->text;
    named->entry = text;
    named->entry_len = a->entry_len;
    named->lease_ms = a->lock->settings.lease_ms;
    named->arg = a;
    pawli_call_ref(&a->call);
    return text + a->entry_len;
}

/* Names the first in the line: their turn is next. */
static struct check *make_check(struct pawli_line *line)
{
    struct pawli_list *node;
    struct check *check;
    size_t n = 0;
    size_t text_len = 0;
    char *text;

    for (node = line->waiters.next; node != &line->waiters && n < NAMED_MAX; node = node->next) {
        n++;
        text_len += PAWLI_CONTAINER(node, struct pawli_acquire, in_line)->entry_len;
    }
    check = calloc(1, sizeof *check + n * sizeof *check->named + text_len);
    if (check == NULL)
        return NULL;
    text = (char *)&check->named[n];
    for (node = line->waiters.next; check->req.n_checks < n; node = node->next)
        text = name(check, PAWLI_CONTAINER(node, struct pawli_acquire, in_line), text);
    check->line = line;
    check->client = line->client;
    check->key = pawli_key_ref(line->key);
    check->req.op = PAWLI_OP_CHECK;
    check->req.key = line->key;
    check->req.floor = pawli_fence_floor(&line->client->fence, line->key->slot);
    check->req.inbox = line->client->inbox;
    check->req.checks = check->named;
    check->req.done = checked;
    return check;
}

static void look(struct pawli_line *line)
{
    struct pawl_client *client = line->client;

    if (line->check != NULL) {
        line->again = true;
        return;
    }
    line->again = false;
    line->check = make_check(line);
    if (line->check == NULL) {
        arm(line, -1, false);
        return;
    }
    line->checking_ns = pawli_loop_now_ns(client->loop);
    pawli_client_submit(client, &line->check->req);
}

static void timer_fired(struct pawli_timer *timer)
{
    look(PAWLI_CONTAINER(timer, struct pawli_line, timer));
}

void pawli_line_check(struct pawli_acquire *a)
{
    if (a->line != NULL)
        look(a->line);
}

void pawli_lines_check(struct pawl_client *client)
{
    struct pawli_list *node;

    for (node = client->lines.next; node != &client->lines; node = node->next)
        look(PAWLI_CONTAINER(node, struct pawli_line, link));
}

void pawli_lines_listen(struct pawl_client *client)
{
    struct pawli_list *node;

    for (node = client->lines.next; node != &client->lines; node = node->next)
        client->backend->listen(client->node, PAWLI_CONTAINER(node, struct pawli_line, link)->key,
                                true);
}

void pawli_line_news(struct pawli_acquire *a)
{
    struct pawli_wait_event ev = { .kind = PAWLI_WAIT_CHECKING };

    if (a->line->checking_ns != 0) {
        ev.sent_ns = a->line->checking_ns;
    } else if (a->line->failure < 0) {
        ev.kind = PAWLI_WAIT_CHECKED;
        ev.code = a->line->failure;
    } else {
        return;
    }
    pawli_acquire_step(a, &ev);
}

/* ---- joining and leaving ---- */

static struct pawli_line *line_of(struct pawl_client *client, const char *name, size_t name_len)
{
    uint64_t hash = pawli_hash(PAWLI_HASH_START, name, name_len);
    struct pawli_map_node *node;

    for (node = pawli_map_first(&client->lines_by_key, hash); node != NULL;
         node = pawli_map_next(node)) {
        struct pawli_line *line = PAWLI_CONTAINER(node, struct pawli_line, by_key);

        if (line->key->name_len == name_len && memcmp(line->key->name, name, name_len) == 0)
            return line;
    }
    return NULL;
}

static struct pawli_line *line_new(struct pawl_client *client, struct pawli_key *key)
{
    struct pawli_line *line = calloc(1, sizeof *line);
    uint64_t hash = pawli_hash(PAWLI_HASH_START, key->name, key->name_len);

    if (line == NULL || pawli_loop_timer_reserve(client->loop) < 0) {
        free(line);
        return NULL;
    }
    if (pawli_map_add(&client->lines_by_key, &line->by_key, hash) < 0) {
        pawli_loop_timer_unreserve(client->loop);
        free(line);
        return NULL;
    }
    line->client = client;
    line->key = pawli_key_ref(key);
    line->timer.fire = timer_fired;
    line->period_ns = PERIOD_NS;
    pawli_list_init(&line->waiters);
    pawli_list_append(&client->lines, &line->link);
    client->n_lines++;
    client->backend->listen(client->node, line->key, true);
    return line;
}

static void line_free(struct pawli_line *line)
{
    struct pawl_client *client = line->client;

    if (line->check != NULL)
        line->check->line = NULL;
    if (!client->stopped)
        client->backend->listen(client->node, line->key, false);
    pawli_map_remove(&client->lines_by_key, &line->by_key);
    pawli_list_remove(&line->link);
    client->n_lines--;
    pawli_loop_timer_clear(client->loop, &line->timer);
    pawli_loop_timer_unreserve(client->loop);
    pawli_key_unref(line->key);
    free(line);
}

void pawli_line_join(struct pawli_acquire *a)
{
    struct pawl_client *client = a->call.client;
    int64_t quarter_ns = a->lock->settings.lease_ms * PAWLI_NS_PER_MS / 4;
    struct pawli_line *line;
    bool first;

    if (a->line != NULL)
        return;
    line = line_of(client, a->lock->key->name, a->lock->key->name_len);
    first = line == NULL;
    if (first)
        line = line_new(client, a->lock->key);
    if (line == NULL)
        return;
    if (quarter_ns < line->period_ns)
        line->period_ns = quarter_ns;
    a->line = line;
    pawli_list_append(&line->waiters, &a->in_line);
    if (first)
        arm(line, a->req.answer.pttl_ms, a->ticket == 1);
}

void pawli_line_leave(struct pawli_acquire *a)
{
    struct pawli_line *line = a->line;

    if (line == NULL)
        return;
    a->line = NULL;
    pawli_list_remove(&a->in_line);
    if (pawli_list_empty(&line->waiters))
        line_free(line);
}

/* ---- grants ---- */

void pawli_line_granted(struct pawl_client *client, const char *hold_id, uint64_t token,
                        int64_t sent_ns)
{
    struct pawli_wait_event ev = { .kind = PAWLI_WAIT_GRANTED, .sent_ns = sent_ns };
    struct pawli_acquire *a = find(client, hold_id);

    if (a == NULL)
        return; /* forged, or of a place that was given up: the claim ends by itself */
    a->granted_token = token;
    if (sent_ns < a->wait.base_ns)
        sent_ns = a->wait.base_ns;
    if (a->line != NULL && pawli_clocks_jump_ns(client, sent_ns, a->lock->settings.lease_ms) > 0)
        look(a->line); /* the machine was frozen: the claim may be over */
    else
        pawli_acquire_step(a, &ev);
}

void pawli_line_passed_on(struct pawl_client *client, const struct pawli_answer *answer,
                          int64_t sent_ns)
{
    if (answer->granted_id[0] != '\0')
        pawli_line_granted(client, answer->granted_id, answer->granted_token, sent_ns);
}

void pawli_line_freed(struct pawl_client *client, const char *name, size_t name_len)
{
    struct pawli_line *line = line_of(client, name, name_len);

    if (line != NULL)
        look(line);
}
