/* store_sqlite.c: the orders database in an SQLite file shared by all instances of a host.
 *
 * The lock keeps duplicates away; this file is the backstop that holds when the lock does not:
 *   order_id is a primary key                     no order twice
 *   UPDATE stock ... WHERE qty >= n               no piece sold twice, whatever was read before
 *   pawl's CLAIM first, CHECK last                a holder that was paused past its lease and
 *                                                 wakes up after its successor writes nothing
 * Runs on the store's worker thread only. */
#include "store.h"

#include <pawl.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "clock.h"

enum statement {
    SQL_BEGIN,
    SQL_COMMIT,
    SQL_ROLLBACK,
    SQL_CLAIM,
    SQL_CHECK,
    SQL_GET_ORDER,
    SQL_GET_STOCK,
    SQL_DEDUCT,
    SQL_INSERT,
    SQL_SET_STOCK,
    SQL_UNSAFE_ORDER,
    SQL_UNSAFE_INSERT,
    SQL_UNSAFE_STOCK,
    N_STATEMENTS
};

/* CLAIM and CHECK come from pawl. */
static const char *const statement_texts[N_STATEMENTS] = {
    [SQL_BEGIN] = "BEGIN IMMEDIATE",
    [SQL_COMMIT] = "COMMIT",
    [SQL_ROLLBACK] = "ROLLBACK",
    [SQL_GET_ORDER] = "SELECT user_id, sku, quantity, token, instance, created_us"
                      " FROM orders WHERE order_id = ?1",
    [SQL_GET_STOCK] = "SELECT qty FROM stock WHERE sku = ?1",
    [SQL_DEDUCT] = "UPDATE stock SET qty = qty - ?2 WHERE sku = ?1 AND qty >= ?2",
    [SQL_INSERT] = "INSERT INTO orders (order_id, user_id, sku, quantity, token, instance,"
                   " created_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SQL_SET_STOCK] = "INSERT INTO stock (sku, qty) VALUES (?1, ?2)"
                      " ON CONFLICT (sku) DO UPDATE SET qty = excluded.qty",
    [SQL_UNSAFE_ORDER] = "SELECT user_id, sku, quantity, token, instance, created_us"
                         " FROM unsafe_orders WHERE order_id = ?1 LIMIT 1",
    [SQL_UNSAFE_INSERT] = "INSERT INTO unsafe_orders (order_id, user_id, sku, quantity, token,"
                          " instance, created_us) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    [SQL_UNSAFE_STOCK] = "UPDATE stock SET qty = ?2 WHERE sku = ?1",
};

static const char schema[] =
    "CREATE TABLE stock (sku TEXT PRIMARY KEY, qty INTEGER NOT NULL CHECK (qty >= 0))"
    " WITHOUT ROWID;"
    "CREATE TABLE orders (order_id TEXT PRIMARY KEY, user_id TEXT NOT NULL, sku TEXT NOT NULL,"
    " quantity INTEGER NOT NULL, token INTEGER NOT NULL, instance TEXT NOT NULL,"
    " created_us INTEGER NOT NULL) WITHOUT ROWID;"
    "CREATE TABLE unsafe_orders (order_id TEXT, user_id TEXT, sku TEXT, quantity INTEGER,"
    " token INTEGER, instance TEXT, created_us INTEGER);"
    "INSERT INTO stock (sku, qty) VALUES ('" ORDER_DEFAULT_SKU "', 100);";

struct store_conn {
    sqlite3 *db;
    sqlite3_stmt *statements[N_STATEMENTS];
    int64_t busy_ms;
    int64_t busy_since_us;
    int broken;
};

static int down(struct store_conn *conn, const char *doing, char *why)
{
    int code = sqlite3_errcode(conn->db) & 0xff;

    snprintf(why, STORE_WHY_MAX, "%s: %s", doing, sqlite3_errmsg(conn->db));
    if (code != SQLITE_BUSY && code != SQLITE_FULL && code != SQLITE_LOCKED)
        conn->broken = 1;
    return STORE_EDOWN;
}

/* Three instances write to one file, each for well under a millisecond. SQLite's own handler
 * sleeps up to 100 ms and so lets the unlucky one starve; this one looks again soon. */
static int on_busy(void *arg, int n_calls)
{
    struct store_conn *conn = arg;
    struct timespec nap = { 0, 200000 + (n_calls % 16) * 100000 };

    if (n_calls == 0)
        conn->busy_since_us = clock_run_us();
    if (clock_run_us() - conn->busy_since_us >= conn->busy_ms * 1000)
        return 0;
    nanosleep(&nap, NULL);
    return 1;
}

static sqlite3_stmt *prepared(struct store_conn *conn, enum statement which)
{
    const char *text = statement_texts[which];

    if (conn->statements[which] != NULL)
        return conn->statements[which];
    if (which == SQL_CLAIM)
        text = pawl_fence_sql(PAWL_SQL_SQLITE, PAWL_SQL_CLAIM);
    else if (which == SQL_CHECK)
        text = pawl_fence_sql(PAWL_SQL_SQLITE, PAWL_SQL_CHECK);
    sqlite3_prepare_v3(conn->db, text, -1, SQLITE_PREPARE_PERSISTENT, &conn->statements[which],
                       NULL);
    return conn->statements[which]; /* NULL: binding and stepping NULL report misuse */
}

/* Run a statement that returns no rows. Returns the number of rows changed, or -1. */
static int run(struct store_conn *conn, enum statement which)
{
    sqlite3_stmt *s = prepared(conn, which);
    int rc = sqlite3_step(s);

    sqlite3_reset(s);
    sqlite3_clear_bindings(s);
    return rc == SQLITE_DONE ? sqlite3_changes(conn->db) : -1;
}

static int run_fence(struct store_conn *conn, enum statement which,
                     const struct store_claim *claim)
{
    sqlite3_stmt *s = prepared(conn, which);

    sqlite3_bind_text(s, 1, claim->resource, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, claim->token);
    sqlite3_bind_text(s, 3, claim->owner, -1, SQLITE_STATIC);
    return run(conn, which);
}

static void copy_column(sqlite3_stmt *s, int column, char *ret_text, size_t size)
{
    const unsigned char *text = sqlite3_column_text(s, column);

    snprintf(ret_text, size, "%s", text == NULL ? "" : (const char *)text);
}

static int select_order(struct store_conn *conn, enum statement which, struct order *order,
                        char *why)
{
    sqlite3_stmt *s = prepared(conn, which);
    int rc;

    sqlite3_bind_text(s, 1, order->order_id, -1, SQLITE_STATIC);
    rc = sqlite3_step(s);
    if (rc == SQLITE_ROW) {
        copy_column(s, 0, order->user_id, sizeof order->user_id);
        copy_column(s, 1, order->sku, sizeof order->sku);
        order->quantity = sqlite3_column_int(s, 2);
        order->token = sqlite3_column_int64(s, 3);
        copy_column(s, 4, order->instance, sizeof order->instance);
        order->created_us = sqlite3_column_int64(s, 5);
    }
    sqlite3_reset(s);
    if (rc == SQLITE_ROW)
        return STORE_OK;
    return rc == SQLITE_DONE ? STORE_NOT_FOUND : down(conn, "reading an order", why);
}

static int get_order(struct store_conn *conn, struct order *order, char *why)
{
    return select_order(conn, SQL_GET_ORDER, order, why);
}

static int get_stock(struct store_conn *conn, const char *sku, int64_t *ret_quantity, char *why)
{
    sqlite3_stmt *s = prepared(conn, SQL_GET_STOCK);
    int rc;

    sqlite3_bind_text(s, 1, sku, -1, SQLITE_STATIC);
    rc = sqlite3_step(s);
    if (rc == SQLITE_ROW)
        *ret_quantity = sqlite3_column_int64(s, 0);
    sqlite3_reset(s);
    if (rc == SQLITE_ROW)
        return STORE_OK;
    return rc == SQLITE_DONE ? STORE_NOT_FOUND : down(conn, "reading the stock", why);
}

/* An open file that was moved or deleted can still be written to, and nobody would ever see it. */
static int alive(struct store_conn *conn, char *why)
{
    int moved = 0;

    sqlite3_file_control(conn->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    if (!moved)
        return 0;
    snprintf(why, STORE_WHY_MAX, "the database file was moved or deleted");
    conn->broken = 1;
    return STORE_EDOWN;
}

static int insert_order(struct store_conn *conn, enum statement which, const struct order *order)
{
    sqlite3_stmt *s = prepared(conn, which);

    sqlite3_bind_text(s, 1, order->order_id, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 2, order->user_id, -1, SQLITE_STATIC);
    sqlite3_bind_text(s, 3, order->sku, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 4, order->quantity);
    sqlite3_bind_int64(s, 5, order->token);
    sqlite3_bind_text(s, 6, order->instance, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 7, order->created_us);
    return run(conn, which);
}

static int is_same_order(const struct order *a, const struct order *b)
{
    return strcmp(a->user_id, b->user_id) == 0 && strcmp(a->sku, b->sku) == 0 &&
           a->quantity == b->quantity;
}

static int deduct(struct store_conn *conn, const struct order *order, char *why)
{
    sqlite3_stmt *s = prepared(conn, SQL_DEDUCT);
    int64_t quantity;
    int rc;

    sqlite3_bind_text(s, 1, order->sku, -1, SQLITE_STATIC);
    sqlite3_bind_int(s, 2, order->quantity);
    rc = run(conn, SQL_DEDUCT);
    if (rc < 0)
        return down(conn, "deducting stock", why);
    if (rc == 1)
        return STORE_OK;
    rc = get_stock(conn, order->sku, &quantity, why);
    if (rc < 0)
        return rc;
    return rc == STORE_NOT_FOUND ? STORE_NO_SKU : STORE_SOLD_OUT;
}

/* What happens between BEGIN and COMMIT: claim, read, write, still mine? */
static int submit_inside(struct store_conn *conn, const struct store_claim *claim,
                         struct order *order, char *why)
{
    struct order found = *order;
    int rc;

    if (claim->owner != NULL) {
        rc = run_fence(conn, SQL_CLAIM, claim);
        if (rc <= 0)
            return rc == 0 ? STORE_STALE : down(conn, "claiming", why);
    }
    rc = get_order(conn, &found, why);
    if (rc < 0)
        return rc;
    if (rc == STORE_OK) {
        if (!is_same_order(order, &found))
            return STORE_CONFLICT;
        *order = found;
        return STORE_DUPLICATE;
    }
    rc = deduct(conn, order, why);
    if (rc != STORE_OK)
        return rc;
    if (insert_order(conn, SQL_INSERT, order) != 1)
        return down(conn, "writing an order", why);
    if (claim->still_mine != NULL && !claim->still_mine(claim->arg))
        return STORE_LOST;
    if (claim->owner != NULL) {
        rc = run_fence(conn, SQL_CHECK, claim);
        if (rc <= 0)
            return rc == 0 ? STORE_STALE : down(conn, "checking the claim", why);
    }
    return STORE_OK;
}

static int submit(struct store_conn *conn, const struct store_claim *claim, struct order *order,
                  char *why)
{
    int rc;

    if (run(conn, SQL_BEGIN) < 0)
        return down(conn, "beginning a transaction", why);
    rc = submit_inside(conn, claim, order, why);
    /* A duplicate commits its claim: an older holder is shut out from now on. */
    if (rc == STORE_OK || rc == STORE_DUPLICATE) {
        if (run(conn, SQL_COMMIT) >= 0)
            return rc;
        rc = down(conn, "committing", why);
    }
    if (!sqlite3_get_autocommit(conn->db) && run(conn, SQL_ROLLBACK) < 0)
        conn->broken = 1;
    return rc;
}

static int set_stock(struct store_conn *conn, const char *sku, int64_t quantity, char *why)
{
    sqlite3_stmt *s = prepared(conn, SQL_SET_STOCK);

    sqlite3_bind_text(s, 1, sku, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, quantity);
    return run(conn, SQL_SET_STOCK) < 0 ? down(conn, "setting the stock", why) : STORE_OK;
}

static int unsafe_read(struct store_conn *conn, struct order *order, int64_t *ret_quantity,
                       char *why)
{
    int rc = get_stock(conn, order->sku, ret_quantity, why);

    if (rc != STORE_OK)
        return rc == STORE_NOT_FOUND ? STORE_NO_SKU : rc;
    return select_order(conn, SQL_UNSAFE_ORDER, order, why);
}

static int unsafe_write(struct store_conn *conn, const struct order *order, int64_t new_quantity,
                        char *why)
{
    sqlite3_stmt *s = prepared(conn, SQL_UNSAFE_STOCK);

    sqlite3_bind_text(s, 1, order->sku, -1, SQLITE_STATIC);
    sqlite3_bind_int64(s, 2, new_quantity);
    if (run(conn, SQL_UNSAFE_STOCK) < 0 || insert_order(conn, SQL_UNSAFE_INSERT, order) < 0)
        return down(conn, "writing without a guard", why);
    return STORE_OK;
}

static int has_tables(struct store_conn *conn)
{
    return sqlite3_table_column_metadata(conn->db, "main", "orders", NULL, NULL, NULL, NULL, NULL,
                                         NULL) == SQLITE_OK;
}

/* Three instances may meet at a new file: the first to get the write lock makes the tables. */
static int make_tables(struct store_conn *conn, char *why)
{
    if (has_tables(conn))
        return 0;
    if (sqlite3_exec(conn->db, "BEGIN IMMEDIATE", NULL, NULL, NULL) != SQLITE_OK)
        return down(conn, "making the tables", why);
    if (!has_tables(conn) &&
        (sqlite3_exec(conn->db, schema, NULL, NULL, NULL) != SQLITE_OK ||
         sqlite3_exec(conn->db, pawl_fence_sql(PAWL_SQL_SQLITE, PAWL_SQL_TABLE), NULL, NULL,
                      NULL) != SQLITE_OK)) {
        down(conn, "making the tables", why);
        sqlite3_exec(conn->db, "ROLLBACK", NULL, NULL, NULL);
        return STORE_EDOWN;
    }
    if (sqlite3_exec(conn->db, "COMMIT", NULL, NULL, NULL) != SQLITE_OK)
        return down(conn, "making the tables", why);
    return 0;
}

static void conn_close(struct store_conn *conn)
{
    size_t i;

    for (i = 0; i < N_STATEMENTS; i++)
        sqlite3_finalize(conn->statements[i]);
    sqlite3_close_v2(conn->db);
    free(conn);
}

/* Switching a new file to WAL needs it exclusively and is not covered by the busy handler, so it
 * is repeated here. */
static int set_wal(struct store_conn *conn)
{
    int64_t until_us = clock_run_us() + conn->busy_ms * 1000;
    const struct timespec nap = { 0, 2000000 };
    int rc;

    while ((rc = sqlite3_exec(conn->db, "PRAGMA journal_mode=WAL", NULL, NULL, NULL)) ==
               SQLITE_BUSY &&
           clock_run_us() < until_us)
        nanosleep(&nap, NULL);
    return rc;
}

static int conn_open(const struct store_settings *settings, int create,
                     struct store_conn **ret_conn, char *why)
{
    int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | (create ? SQLITE_OPEN_CREATE : 0);
    struct store_conn *conn = calloc(1, sizeof *conn);

    if (conn == NULL) {
        snprintf(why, STORE_WHY_MAX, "out of memory");
        return STORE_EDOWN;
    }
    conn->busy_ms = settings->busy_ms;
    if (sqlite3_open_v2(settings->location, &conn->db, flags, NULL) != SQLITE_OK)
        goto fail;
    sqlite3_busy_handler(conn->db, on_busy, conn);
    if (set_wal(conn) != SQLITE_OK ||
        sqlite3_exec(conn->db,
                     settings->full_sync ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL",
                     NULL, NULL, NULL) != SQLITE_OK)
        goto fail;
    if (make_tables(conn, why) < 0) {
        conn_close(conn);
        return STORE_EDOWN;
    }
    *ret_conn = conn;
    return 0;

fail:
    snprintf(why, STORE_WHY_MAX, "opening %.80s: %s", settings->location,
             conn->db == NULL ? "out of memory" : sqlite3_errmsg(conn->db));
    conn_close(conn);
    return STORE_EDOWN;
}

static int conn_is_broken(const struct store_conn *conn)
{
    return conn->broken;
}

const struct store_driver store_sqlite = {
    .scheme = "sqlite",
    .open = conn_open,
    .close = conn_close,
    .is_broken = conn_is_broken,
    .alive = alive,
    .submit = submit,
    .get_order = get_order,
    .get_stock = get_stock,
    .set_stock = set_stock,
    .unsafe_read = unsafe_read,
    .unsafe_write = unsafe_write,
};
