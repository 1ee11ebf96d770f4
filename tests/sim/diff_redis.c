/* The in-memory Redis against a real one: random commands and the shipped scripts with random
 * arguments, reply by reply, and the data now and then. */
#include <hiredis/hiredis.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/redis/script_texts.h"
#include "fake_redis.h"
#include "lib/redis_server.h"
#include "rng.h"

#define ARGS_MAX 24
#define TEXT_MAX 256
#define HISTORY 40
#define INBOX "pawl:i:told"

struct diff {
    struct sim_rng rng;
    redisContext *real;
    redisContext *listener;
    struct fr_server fake;
    struct fr_conn fake_listener;
    char text[ARGS_MAX][TEXT_MAX];
    struct fr_bytes argv[ARGS_MAX];
    size_t argc;
    struct fr_out real_out;
    struct fr_out fake_out;
    char token[TEXT_MAX]; /* one that was given lately */
    uint64_t n_commands;
    uint64_t n_scripts;
    uint64_t n_errors;
    uint64_t n_resyncs;
    bool at_an_end; /* when the last command ran */
    char history[HISTORY][200];
};

static int64_t clock_us(clockid_t clock)
{
    struct timespec ts;

    (void)clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

/* ---- words of a command ---- */

__attribute__((format(printf, 2, 3))) static void word(struct diff *d, const char *format, ...)
{
    va_list args;
    int len;

    va_start(args, format);
    len = vsnprintf(d->text[d->argc], TEXT_MAX, format, args);
    va_end(args);
    d->argv[d->argc].data = d->text[d->argc];
    d->argv[d->argc].len = (size_t)len;
    d->argc++;
}

static void plain(struct diff *d, const char *text)
{
    (void)snprintf(d->text[d->argc], TEXT_MAX, "%s", text);
    d->argv[d->argc] = fr_text(d->text[d->argc]);
    d->argc++;
}

static void integer(struct diff *d)
{
    static const char *const odd[] = { "", "x", "01", "1.5", "99999999999999999999", "-0", " 1" };

    if (sim_chance(&d->rng, 30000))
        plain(d, odd[sim_below(&d->rng, 7)]);
    else
        word(d, "%lld", (long long)sim_between(&d->rng, -20, 20));
}

/* k key, f field or member, v value, i integer, s score, l long time, r range end. */
static void slot(struct diff *d, char what)
{
    switch (what) {
    case 'k':
        word(d, "key%lld", (long long)sim_below(&d->rng, 6));
        break;
    case 'f':
        word(d, "f%lld", (long long)sim_below(&d->rng, 8));
        break;
    case 'v':
        if (sim_chance(&d->rng, 500000))
            integer(d);
        else
            word(d, "value %lld", (long long)sim_below(&d->rng, 1000));
        break;
    case 's':
        word(d, sim_chance(&d->rng, 100000) ? "%lld.25" : "%lld",
             (long long)sim_between(&d->rng, -5, 4000));
        break;
    case 'l':
        word(d, "%lld", (long long)sim_between(&d->rng, 3000000, 4000000));
        break;
    case 'r':
        word(d, sim_chance(&d->rng, 200000) ? "(%lld" : "%lld",
             (long long)sim_between(&d->rng, -5, 4000));
        break;
    default:
        integer(d);
        break;
    }
}

static const char *const forms[] = {
    "GET k",
    "SET k v",
    "SET k v NX",
    "SET k v XX",
    "SET k v PX l",
    "SET k v KEEPTTL",
    "GETSET k v",
    "STRLEN k",
    "GETRANGE k i i",
    "INCR k",
    "INCRBY k i",
    "EXISTS k k",
    "DEL k",
    "TYPE k",
    "PTTL k",
    "TTL k",
    "PEXPIRE k l",
    "EXPIRE k l",
    "PEXPIRE k i",
    "PERSIST k",
    "HSET k f v",
    "HSET k f v f v",
    "HSETNX k f v",
    "HGET k f",
    "HMGET k f f f",
    "HGETALL k",
    "HKEYS k",
    "HVALS k",
    "HLEN k",
    "HEXISTS k f",
    "HDEL k f f",
    "HINCRBY k f i",
    "ZADD k s f",
    "ZADD k s f s f",
    "ZADD k NX s f",
    "ZADD k XX s f",
    "ZINCRBY k i f",
    "ZREM k f f",
    "ZCARD k",
    "ZSCORE k f",
    "ZRANK k f",
    "ZRANGE k i i",
    "ZRANGE k i i WITHSCORES",
    "ZRANGEBYSCORE k r r",
    "ZRANGEBYSCORE k r r WITHSCORES",
    "ZRANGEBYSCORE k r r LIMIT i i",
    "ZREVRANGEBYSCORE k r r",
    "ZREVRANGEBYSCORE k r r WITHSCORES LIMIT i i",
    "ZCOUNT k r r",
    "ZREMRANGEBYSCORE k r r",
    "ZPOPMIN k",
    "ZPOPMIN k i",
    "PUBLISH pawl:i:told v",
    "PUBLISH nobody v",
    "PING",
};

static void make_plain(struct diff *d)
{
    const char *form = forms[sim_below(&d->rng, (int64_t)(sizeof forms / sizeof *forms))];

    while (*form != '\0') {
        size_t len = strcspn(form, " ");
        char one[32];

        if (len == 1) {
            slot(d, *form);
        } else {
            (void)snprintf(one, sizeof one, "%.*s", (int)len, form);
            plain(d, one);
        }
        form += len;
        form += strspn(form, " ");
    }
}

/* ---- scripts ---- */

static void owner(struct diff *d)
{
    word(d, "%032llx:o", (long long)sim_below(&d->rng, 3));
}

static void hold_id(struct diff *d)
{
    word(d, "%032llx", (long long)sim_between(&d->rng, 100, 106));
}

static void lease(struct diff *d)
{
    word(d, "%lld", (long long)sim_between(&d->rng, 1, 3) * 600000);
}

static void token(struct diff *d)
{
    if (d->token[0] != '\0' && sim_chance(&d->rng, 800000))
        plain(d, d->token);
    else
        word(d, "%lld", (long long)sim_below(&d->rng, 3));
}

static void inbox(struct diff *d)
{
    static const char *const names[] = { INBOX, "pawl:i:deaf", "~none", "" };

    plain(d, names[sim_below(&d->rng, 4)]);
}

/* As src/engine/line.c makes it. */
static void entry(struct diff *d)
{
    int64_t now_us = clock_us(CLOCK_REALTIME);
    char text[TEXT_MAX];
    bool told = sim_chance(&d->rng, 600000);

    (void)snprintf(text, sizeof text, "w%032llx\n%s\n%d\n%d\n%lld\n1\n%032llx:o\nhost 1 1 b",
                   (long long)sim_between(&d->rng, 100, 106), told ? INBOX : "pawl:i:deaf", 600000,
                   sim_chance(&d->rng, 500000) ? 0 : 900000,
                   (long long)(sim_chance(&d->rng, 500000) ? 0 : now_us / 10000000 * 10000000),
                   (long long)sim_below(&d->rng, 3));
    plain(d, sim_chance(&d->rng, 200000) ? "" : text);
}

static void keys(struct diff *d, int n)
{
    long long lock = sim_below(&d->rng, 2);

    word(d, "%d", n);
    word(d, "lock%lld", lock);
    if (n > 1)
        word(d, "queue%lld", lock);
    if (n > 2)
        plain(d, "counter");
}

static void make_acquire(struct diff *d)
{
    keys(d, 3);
    owner(d);
    hold_id(d);
    lease(d);
    word(d, "%lld", sim_chance(&d->rng, 500000) ? 0LL : 5000000LL);
    word(d, "%lld",
         (long long)clock_us(CLOCK_REALTIME) + (sim_chance(&d->rng, 50000) ? -1000000 : 60000000));
    word(d, "%lld", (long long)sim_below(&d->rng, 2) * 7);
    plain(d, "host 1 1 b");
    inbox(d);
    entry(d);
    word(d, "%lld", (long long)sim_below(&d->rng, 3));
    word(d, "%d", sim_chance(&d->rng, 100000));
}

static void make_release(struct diff *d)
{
    keys(d, 3);
    owner(d);
    hold_id(d);
    word(d, "%lld",
         sim_chance(&d->rng, 700000) ? 0LL : (long long)clock_us(CLOCK_REALTIME) + 1000000);
    plain(d, "0");
    inbox(d);
    entry(d);
}

static void make_check(struct diff *d)
{
    keys(d, 3);
    plain(d, "0");
    inbox(d);
    for (int64_t n = sim_between(&d->rng, 1, 3); n > 0; n--) {
        hold_id(d);
        owner(d);
        lease(d);
        entry(d);
    }
}

static void make_script(struct diff *d)
{
    const struct pawli_script_text *text;
    int n = 0;

    while (pawli_script_texts[n] != NULL)
        n++;
    text = pawli_script_texts[sim_below(&d->rng, n)];
    plain(d, "EVAL");
    d->argv[d->argc].data = (char *)text->text;
    d->argv[d->argc++].len = text->len;
    if (strcmp(text->name, "acquire") == 0) {
        make_acquire(d);
    } else if (strcmp(text->name, "release") == 0) {
        make_release(d);
    } else if (strcmp(text->name, "check") == 0) {
        make_check(d);
    } else if (strcmp(text->name, "renew") == 0) {
        keys(d, 1);
        token(d);
        lease(d);
    } else if (strcmp(text->name, "extend") == 0) {
        keys(d, 1);
        owner(d);
        hold_id(d);
        token(d);
        lease(d);
    } else if (strcmp(text->name, "force") == 0) {
        keys(d, 3);
        token(d);
        word(d, "%lld", (long long)sim_below(&d->rng, 2));
        plain(d, "0");
        plain(d, INBOX);
    } else if (strcmp(text->name, "inspect") == 0 || strcmp(text->name, "set_if") == 0) {
        keys(d, 2);
        owner(d);
        token(d);
        slot(d, 'v');
    } else {
        keys(d, 1);
        owner(d);
        token(d);
    }
    d->n_scripts++;
}

/* ---- running and comparing ---- */

static void flatten(const redisReply *reply, struct fr_out *out)
{
    switch (reply->type) {
    case REDIS_REPLY_STATUS:
        fr_status(out, reply->str);
        break;
    case REDIS_REPLY_ERROR:
        fr_error(out, reply->str);
        break;
    case REDIS_REPLY_INTEGER:
        fr_int(out, reply->integer);
        break;
    case REDIS_REPLY_STRING:
        fr_bulk(out, reply->str, (size_t)reply->len);
        break;
    case REDIS_REPLY_ARRAY:
        fr_array(out, reply->elements);
        for (size_t i = 0; i < reply->elements; i++)
            flatten(reply->element[i], out);
        break;
    default:
        fr_nil(out);
        break;
    }
}

/* Lines are equal, or errors of the same kind, or times that differ by a moment. */
static bool same_line(const char *a, size_t a_len, const char *b, size_t b_len, bool script)
{
    long long x;
    long long y;

    if (a_len == b_len && memcmp(a, b, a_len) == 0)
        return true;
    if (a_len == 0 || b_len == 0 || a[0] != b[0])
        return false;
    if (a[0] == '-')
        return strcspn(a, " ") == strcspn(b, " ") && memcmp(a, b, strcspn(a, " ")) == 0;
    if (a[0] != ':')
        return false;
    x = strtoll(a + 1, NULL, 10);
    y = strtoll(b + 1, NULL, 10);
    return x > 1000 && y > 1000 && llabs(x - y) < (script ? 20 : 2000) && (x < 4000000 || !script);
}

static bool same(const struct fr_out *real, const struct fr_out *fake, bool script, bool timed)
{
    const char *a = real->data;
    const char *b = fake->data;
    const char *a_end = a + real->len;
    const char *b_end = b + fake->len;

    while (a < a_end && b < b_end) {
        const char *a_line = memchr(a, '\n', (size_t)(a_end - a));
        const char *b_line = memchr(b, '\n', (size_t)(b_end - b));

        if (a_line == NULL || b_line == NULL)
            return a_end - a == b_end - b && memcmp(a, b, (size_t)(a_end - a)) == 0;
        if (!same_line(a, (size_t)(a_line - a), b, (size_t)(b_line - b), script) &&
            !(timed && a[0] == ':' && b[0] == ':'))
            return false;
        a = a_line + 1;
        b = b_line + 1;
    }
    return a == a_end && b == b_end;
}

/* Something ends just now: which command is the first to see it is up to the clocks. */
static bool at_an_end(const struct diff *d)
{
    for (int i = 0; i < FR_BUCKETS; i++)
        for (const struct fr_entry *e = d->fake.db.bucket[i]; e != NULL; e = e->next)
            if (llabs(e->expire_ms - fr_now_ms(&d->fake.db)) <= 20)
                return true;
    return false;
}

static redisReply *ask_real(struct diff *d)
{
    const char *argv[ARGS_MAX];
    size_t len[ARGS_MAX];
    redisReply *reply;

    for (size_t i = 0; i < d->argc; i++) {
        argv[i] = d->argv[i].data;
        len[i] = d->argv[i].len;
    }
    reply = redisCommandArgv(d->real, (int)d->argc, argv, len);
    if (reply == NULL) {
        printf("the real server is gone: %s\n", d->real->errstr);
        exit(1);
    }
    return reply;
}

static void note_token(struct diff *d, const redisReply *reply)
{
    if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 5 &&
        reply->element[0]->type == REDIS_REPLY_INTEGER && reply->element[0]->integer == 0 &&
        reply->element[2]->type == REDIS_REPLY_INTEGER)
        (void)snprintf(d->token, sizeof d->token, "%lld", reply->element[2]->integer);
}

static void note_history(struct diff *d)
{
    char *line = d->history[d->n_commands % HISTORY];
    int len = 0;

    for (size_t i = 0; i < d->argc && len < 180; i++)
        len += snprintf(line + len, 200 - (size_t)len, "[%.15s] ",
                        i == 1 && d->argv[i].len > TEXT_MAX ? "script" : d->argv[i].data);
}

/* Run the same on both; the time of a script on the real one is the time for the other. */
static bool run_both(struct diff *d)
{
    bool script = fr_is(&d->argv[0], "EVAL");
    bool timed = fr_is(&d->argv[0], "TTL") || fr_is(&d->argv[0], "PTTL");
    redisReply *reply = ask_real(d);
    int64_t now_us = clock_us(CLOCK_REALTIME);

    if (script && reply->type == REDIS_REPLY_ARRAY && reply->elements > 1 &&
        reply->element[1]->type == REDIS_REPLY_INTEGER && reply->element[1]->integer > 0)
        now_us = reply->element[1]->integer;
    note_token(d, reply);
    d->real_out.len = 0;
    d->fake_out.len = 0;
    flatten(reply, &d->real_out);
    freeReplyObject(reply);
    d->fake.db.now_us = now_us;
    d->at_an_end = at_an_end(d);
    fr_execute(&d->fake, d->argv, d->argc, &d->fake_out);
    d->fake_listener.out.len = 0;
    note_history(d);
    d->n_commands++;
    d->n_errors += d->real_out.data[0] == '-';
    return same(&d->real_out, &d->fake_out, script, timed);
}

static void words(struct diff *d, const char *a, const char *b, const char *c, const char *e,
                  const char *f)
{
    const char *const all[] = { a, b, c, e, f };

    d->argc = 0;
    for (int i = 0; i < 5 && all[i] != NULL; i++)
        plain(d, all[i]);
}

static void resync(struct diff *d)
{
    words(d, "FLUSHALL", NULL, NULL, NULL, NULL);
    (void)run_both(d);
    d->n_resyncs++;
}

static bool compare_data(struct diff *d)
{
    for (int i = 0; i < 2; i++) {
        words(d, "HGETALL", i == 0 ? "lock0" : "lock1", NULL, NULL, NULL);
        if (!run_both(d))
            return false;
        words(d, "ZRANGE", i == 0 ? "queue0" : "queue1", "0", "-1", "WITHSCORES");
        if (!run_both(d))
            return false;
    }
    words(d, "GET", "counter", NULL, NULL, NULL);
    return run_both(d);
}

static void show(const struct diff *d, const char *what)
{
    printf("%s after %llu commands:\n ", what, (unsigned long long)d->n_commands);
    for (size_t i = 0; i < d->argc; i++)
        printf(" [%.60s]", d->argv[i].data);
    printf("\nbefore:\n");
    for (uint64_t i = d->n_commands < HISTORY ? 0 : d->n_commands - HISTORY; i < d->n_commands;
         i++)
        printf("  %s\n", d->history[i % HISTORY]);
    printf("real: %.*s\nfake: %.*s\n", (int)d->real_out.len, d->real_out.data,
           (int)d->fake_out.len, d->fake_out.data);
}

static bool step(struct diff *d)
{
    bool data = d->n_commands % 50 == 0;
    bool ok;

    d->argc = 0;
    if (sim_chance(&d->rng, 1000))
        plain(d, "FLUSHALL");
    else if (sim_chance(&d->rng, 300000))
        make_script(d);
    else
        make_plain(d);
    ok = run_both(d);
    if (ok && data)
        ok = compare_data(d);
    if (!ok && d->at_an_end) {
        resync(d);
        ok = true;
    }
    if (!ok)
        show(d, "they differ");
    return ok;
}

static void listen_on_both(struct diff *d, const char *path)
{
    redisReply *reply;

    d->listener = redisConnectUnix(path);
    reply = redisCommand(d->listener, "SUBSCRIBE %s", INBOX);
    freeReplyObject(reply);
    fr_connect(&d->fake, &d->fake_listener);
    d->fake_listener.channel[0] = fr_text(INBOX);
    d->fake_listener.channel[0] = fr_copy(&d->fake_listener.channel[0]);
    d->fake_listener.n_channels = 1;
}

/* Read away what the listener got, lest the server's buffer for it grows. */
static void drain(struct diff *d)
{
    struct timeval none = { 0, 1 };
    redisReply *reply = NULL;

    (void)redisSetTimeout(d->listener, none);
    while (redisGetReply(d->listener, (void **)&reply) == REDIS_OK && reply != NULL) {
        freeReplyObject(reply);
        reply = NULL;
    }
    d->listener->err = 0;
}

int main(int argc, char **argv)
{
    int64_t n = argc > 1 ? strtoll(argv[1], NULL, 10) : 1000000;
    int64_t seconds = argc > 2 ? strtoll(argv[2], NULL, 10) : 3600;
    int64_t from_us = clock_us(CLOCK_MONOTONIC);
    struct redis_server server = { 0 };
    static struct diff d;
    bool ok = true;

    redis_server_start(&server, NULL);
    sim_rng_init(&d.rng, argc > 3 ? strtoull(argv[3], NULL, 10) : 1, 0);
    fr_server_init(&d.fake, fr_lua_new());
    d.real = redisConnectUnix(server.socket);
    listen_on_both(&d, server.socket);
    while (ok && d.n_commands < (uint64_t)n &&
           clock_us(CLOCK_MONOTONIC) - from_us < seconds * 1000000) {
        ok = step(&d);
        if (d.n_commands % 1024 < 8)
            drain(&d);
    }
    printf(
        "%llu commands, of which %llu scripts; %llu answered by errors; begun anew at %llu ends\n",
        (unsigned long long)d.n_commands, (unsigned long long)d.n_scripts,
        (unsigned long long)d.n_errors, (unsigned long long)d.n_resyncs);
    printf("%d passed, %d failed, 0 skipped\n", ok, !ok);
    redisFree(d.real);
    redisFree(d.listener);
    fr_disconnect(&d.fake, &d.fake_listener);
    fr_lua_free(d.fake.lua);
    fr_server_done(&d.fake);
    free(d.real_out.data);
    free(d.fake_out.data);
    redis_server_stop(&server);
    return ok ? 0 : 1;
}
