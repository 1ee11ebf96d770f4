/* pawl watch: the locks, live; on a terminal full screen, elsewhere one line per event. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "commands.h"
#include "exits.h"
#include "help.h"
#include "info.h"
#include "message.h"
#include "run.h"
#include "table.h"
#include "text.h"
#include "watch.h"

enum { OPT_EVERY = OPT_OWN, OPT_PLAIN, OPT_STRINGS };

struct watch {
    struct options *opt;
    const char *pattern;
    int64_t every_ms;
    bool plain;
    bool strings;
    bool stop;
    int ended_by;
    struct pawl_client *client;
    struct store *store;
    struct scan now;
    struct watch_events events;
    char trouble[512]; /* why the last poll failed; "": it did not */
    struct termios saved;
};

/* One poll; the events since the one before. A store that is away is shown, not an end. */
static void look(struct watch *w)
{
    struct scan next = { .strings = w->strings };
    char why[256] = "";
    int rc = 0;

    if (w->store == NULL)
        rc = store_open(w->opt, &w->store, why, sizeof why);
    if (rc == 0)
        rc = scan_keys(&next, w->store, w->opt, w->pattern, why, sizeof why);
    if (rc == 0 && next.n > 0)
        rc = scan_inspect(&next, w->client);
    if (rc < 0) {
        (void)snprintf(w->trouble, sizeof w->trouble, "%s%s%s", result_text(rc),
                       why[0] == '\0' ? "" : ": ", why);
        scan_done(&next);
        store_close(w->store);
        w->store = NULL;
        return;
    }
    w->trouble[0] = '\0';
    watch_compare(&w->events, &w->now, &next);
    scan_done(&w->now);
    w->now = next;
}

static void clock_text(char *buf, size_t len)
{
    time_t now = time(NULL);
    struct tm tm;

    if (localtime_r(&now, &tm) == NULL || strftime(buf, len, "%H:%M:%S", &tm) == 0)
        (void)snprintf(buf, len, "?");
}

/* --- full screen --------------------------------------------------------------------------- */

/* Everything in one write: over ssh half a screen is ugly. "\033[K" ends each line, so that
 * nothing of the one before stays. */
static void draw(struct watch *w)
{
    struct winsize size = { .ws_row = 24, .ws_col = 80 };
    char *text = NULL;
    size_t len = 0;
    char when[16];
    FILE *out = open_memstream(&text, &len);
    int rows;

    if (out == NULL)
        return;
    (void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
    rows = size.ws_row < 8 ? 8 : size.ws_row;
    clock_text(when, sizeof when);
    (void)fprintf(out, "pawl watch %s  %s  %zu  %s\n", w->pattern, when, w->now.n,
                  w->trouble[0] != '\0' ? w->trouble : _("q: quit"));
    table_head(out, size.ws_col);
    for (size_t i = 0; i < w->now.n && i < (size_t)rows - 7; i++)
        table_row(out, &w->now.rows[i], size.ws_col, colour_ok(STDOUT_FILENO));
    for (size_t i = w->now.n; i + 7 < (size_t)rows; i++)
        (void)fputc('\n', out);
    for (size_t i = 0; i < 5; i++)
        (void)fprintf(out, "%.*s%s", (int)size.ws_col - 1, watch_event_text(&w->events, i),
                      i == 4 ? "" : "\n");
    if (fclose(out) == 0) {
        (void)fputs("\033[H", stdout);
        for (const char *at = text; *at != '\0'; at++)
            (void)fputs(*at == '\n' ? "\033[K\r\n" : (char[]){ *at, '\0' }, stdout);
        (void)fputs("\033[K\033[J", stdout);
        (void)fflush(stdout);
    }
    free(text);
}

static void screen_on(struct watch *w)
{
    struct termios raw;

    (void)tcgetattr(STDIN_FILENO, &w->saved);
    raw = w->saved;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    (void)fputs("\033[?1049h\033[?25l\033[2J", stdout);
}

static void screen_off(const struct watch *w)
{
    (void)fputs("\033[?25h\033[?1049l", stdout);
    (void)fflush(stdout);
    (void)tcsetattr(STDIN_FILENO, TCSANOW, &w->saved);
}

/* --- lines --------------------------------------------------------------------------------- */

static void print_lines(struct watch *w)
{
    static char said[512];

    for (size_t i = w->events.n_printed; i < w->events.n; i++)
        watch_print(&w->events, i, w->opt->json);
    w->events.n_printed = w->events.n;
    if (strcmp(said, w->trouble) != 0 && w->trouble[0] != '\0')
        say("%s", w->trouble);
    (void)snprintf(said, sizeof said, "%s", w->trouble);
    if (end_output(0) != 0)
        w->stop = true;
}

/* --- the loop ------------------------------------------------------------------------------ */

static void take_signals(struct watch *w, int fd)
{
    struct signalfd_siginfo si;

    while (read(fd, &si, sizeof si) == (ssize_t)sizeof si) {
        int sig = (int)si.ssi_signo;

        if (sig == SIGTSTP && !w->plain) {
            screen_off(w);
            (void)raise(SIGSTOP);
            screen_on(w);
        } else if (signals_ends(sig)) {
            w->stop = true;
            w->ended_by = sig;
        }
    }
}

static void take_keys(struct watch *w)
{
    char key;

    /* Also at the end of input: a terminal that has hung up is readable for ever. */
    if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
        w->stop = true;
}

static int64_t now_ms(void)
{
    return boot_ns() / 1000000;
}

static void loop(struct watch *w, int signal_fd)
{
    int64_t next = now_ms();

    while (!w->stop) {
        /* Of stdout only that its reader has gone, which without events no write would tell. */
        struct pollfd fds[] = { { signal_fd, POLLIN, 0 },
                                { w->plain ? STDOUT_FILENO : STDIN_FILENO, w->plain ? 0 : POLLIN,
                                  0 } };
        int64_t left;

        if (now_ms() >= next) {
            look(w);
            next = now_ms() + w->every_ms;
        }
        if (w->plain)
            print_lines(w);
        else
            draw(w);
        left = next - now_ms();
        (void)poll(fds, 2, left < 0 ? 0 : (int)left);
        take_signals(w, signal_fd);
        if (w->plain && (fds[1].revents & POLLERR) != 0) {
            w->stop = true;
            w->ended_by = SIGPIPE;
        } else if (fds[1].revents != 0 && !w->plain) {
            take_keys(w);
        }
    }
}

static int watch(struct watch *w)
{
    struct run_signals signals;
    int code = options_client(w->opt, &w->client);

    if (code == 0)
        code = signals_init(&signals);
    if (code != 0)
        return code;
    w->plain = w->plain || w->opt->json || isatty(STDOUT_FILENO) != 1 || isatty(STDIN_FILENO) != 1;
    look(w);
    if (w->trouble[0] != '\0') {
        /* What does not work at the start is an answer; what fails later is waited for. */
        say("%s", w->trouble);
        code = EXIT_UNREACHABLE;
    } else {
        if (!w->plain)
            screen_on(w);
        loop(w, signals.fd);
        if (!w->plain)
            screen_off(w);
        code = w->ended_by != 0 ? 128 + w->ended_by : end_output(0);
    }
    scan_done(&w->now);
    store_close(w->store);
    pawl_client_close(w->client);
    return code;
}

int command_watch(struct options *opt, int argc, char **argv)
{
    /* clang-format off */
    static const struct option longs[] = {
        COMMON_LONG,
        { "every", required_argument, NULL, OPT_EVERY },
        { "plain", no_argument, NULL, OPT_PLAIN },
        { "strings", no_argument, NULL, OPT_STRINGS },
        { NULL, 0, NULL, 0 }
    };
    /* clang-format on */
    struct watch w = { .opt = opt, .pattern = "*", .every_ms = 1000 };
    int rc;
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, COMMON_SHORT, longs, NULL)) != -1) {
        rc = options_take(opt, c, optarg);
        if (rc >= 0)
            return rc;
        rc = c == OPT_EVERY ? options_duration(opt, "--every", optarg, &w.every_ms) : 0;
        if (rc != 0)
            return rc;
        w.plain = w.plain || c == OPT_PLAIN;
        w.strings = w.strings || c == OPT_STRINGS;
    }
    if (w.every_ms < 100 || w.every_ms > 3600000)
        return usage_error("watch", _("--every is from 100ms to 1h"));
    if (argc - optind > 1)
        return usage_error("watch", _("one pattern at most; quote it: '%s'"), "order:*");
    if (argc > optind)
        w.pattern = argv[optind];
    rc = options_finish(opt);
    return rc != 0 ? rc : watch(&w);
}
