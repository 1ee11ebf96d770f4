/* Rows of locks in columns. */
#include "table.h"

#include <string.h>

#include "duration.h"
#include "info.h"
#include "message.h"
#include "text.h"

#define KEY_WIDTH 24
#define HOLDER_WIDTH 22

/* @text cut or filled to @width columns of the terminal. */
static void put_cell(FILE *out, const char *text, size_t width)
{
    char cut[NAME_TEXT];
    size_t n = 0;

    (void)snprintf(cut, sizeof cut, "%s", text);
    n = strlen(cut);
    while (text_columns(cut) > width && n > 0) {
        /* A whole character of UTF-8, and room for the mark that something is missing. */
        do
            n--;
        while (n > 0 && ((unsigned char)cut[n] & 0xc0) == 0x80);
        (void)snprintf(cut + n, sizeof cut - n, "~");
    }
    (void)fputs(cut, out);
    for (size_t i = text_columns(cut); i < width; i++)
        (void)fputc(' ', out);
}

static void widths(int columns, size_t *ret_key, size_t *ret_holder)
{
    size_t spare = columns > 80 ? (size_t)columns - 80 : columns == 0 ? 20 : 0;

    *ret_key = KEY_WIDTH + spare * 2 / 3;
    *ret_holder = HOLDER_WIDTH + spare / 3;
}

void table_head(FILE *out, int columns)
{
    size_t key;
    size_t holder;

    widths(columns, &key, &holder);
    put_cell(out, _("LOCK"), key);
    (void)fputc(' ', out);
    put_cell(out, _("HOLDER"), holder);
    (void)fprintf(out, " %3s %7s %7s %4s  %s\n", "N", _("HELD"), _("LEFT"), "WAIT", _("STATE"));
}

static const char *colour_of(enum verdict verdict, const struct pawl_lock_info *info)
{
    if (verdict >= VERDICT_LATE)
        return "\033[31m";
    if (verdict != VERDICT_FINE)
        return "\033[33m";
    return info->lease_ms > 0 && info->remaining_ms * 2 < info->lease_ms ? "\033[33m" : "\033[32m";
}

void table_row(FILE *out, const struct scan_row *row, int columns, bool colour)
{
    enum verdict verdict = info_verdict(row->info);
    char text[NAME_TEXT];
    char held[DURATION_TEXT];
    char left[DURATION_TEXT];
    size_t key;
    size_t holder;

    widths(columns, &key, &holder);
    if (colour)
        (void)fputs(colour_of(verdict, row->info), out);
    put_cell(out, printable(row->key, row->key_len, text, sizeof text), key);
    (void)fputc(' ', out);
    put_cell(out, info_holder(row->info, text, sizeof text), holder);
    if (row->info->remaining_ms < 0)
        (void)snprintf(left, sizeof left, "%s", _("never"));
    else
        (void)duration_text(row->info->remaining_ms, left, sizeof left);
    (void)fprintf(out, " %3lld %7s %7s %4zu  %s", (long long)row->info->count,
                  row->info->kind == PAWL_KIND_PAWL
                      ? duration_text(row->info->held_ms / 1000 * 1000, held, sizeof held)
                      : "-",
                  left, row->info->n_waiters, verdict_name(verdict));
    (void)fputs(colour ? "\033[0m\n" : "\n", out);
}
