/* pawl ls: the locks there are. */
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "commands.h"
#include "exits.h"
#include "help.h"
#include "info.h"
#include "message.h"
#include "scan.h"
#include "table.h"
#include "text.h"

enum { OPT_STRINGS = OPT_OWN };

static int print(const struct scan *scan, const struct options *o)
{
    struct winsize size = { 0 };
    bool terminal = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
    int columns = terminal ? size.ws_col : 0;

    if (o->json) {
        json_t *list = json_array();

        for (size_t i = 0; i < scan->n; i++)
            (void)json_array_append_new(
                list, info_json(scan->rows[i].key, scan->rows[i].key_len, scan->rows[i].info));
        return json_print(list, EXIT_OK);
    }
    if (scan->n == 0) {
        note(_("no locks"));
        return EXIT_OK;
    }
    table_head(stdout, columns);
    for (size_t i = 0; i < scan->n; i++)
        table_row(stdout, &scan->rows[i], columns, colour_ok(STDOUT_FILENO));
    return EXIT_OK;
}

static int list(struct options *opt, const char *pattern, bool strings)
{
    struct scan scan = { .strings = strings };
    struct pawl_client *client = NULL;
    struct store *store = NULL;
    char why[256];
    int rc = store_open(opt, &store, why, sizeof why);
    int code;

    if (rc == 0)
        rc = scan_keys(&scan, store, opt, pattern, why, sizeof why);
    if (rc < 0) {
        say("%s (%s)", result_text(rc), why);
        code = cli_exit_of(rc);
    } else {
        code = options_client(opt, &client);
        if (code == 0 && scan.n > 0)
            rc = scan_inspect(&scan, client);
        if (rc < 0)
            code = say_result(_("cannot look at the locks"), rc);
        if (code == 0)
            code = end_output(print(&scan, opt));
    }
    scan_done(&scan);
    pawl_client_close(client);
    store_close(store);
    return code;
}

int command_ls(struct options *opt, int argc, char **argv)
{
    /* clang-format off */
    static const struct option longs[] = {
        COMMON_LONG,
        { "strings", no_argument, NULL, OPT_STRINGS },
        { NULL, 0, NULL, 0 }
    };
    /* clang-format on */
    bool strings = false;
    int rc;
    int c;

    optind = 0;
    while ((c = getopt_long(argc, argv, COMMON_SHORT, longs, NULL)) != -1) {
        rc = options_take(opt, c, optarg);
        if (rc >= 0)
            return rc;
        if (c == OPT_STRINGS)
            strings = true;
    }
    if (argc - optind > 1)
        return usage_error("ls", _("one pattern at most; quote it: '%s'"), "order:*");
    rc = options_finish(opt);
    return rc != 0 ? rc : list(opt, argc > optind ? argv[optind] : "*", strings);
}
