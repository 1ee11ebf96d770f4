/* The resource's side of fencing for SQL databases: statements as text, nothing is run here. */
#include <stddef.h>

#include <pawl.h>

#define TABLE_SQL                                                                                 \
    "CREATE TABLE IF NOT EXISTS pawl_fence ("                                                     \
    "resource TEXT PRIMARY KEY, token BIGINT NOT NULL, owner TEXT NOT NULL)"

/* A newer token claims; the same token only for the same owner, because two primaries of a store
 * may for a moment give equal numbers. */
#define CLAIM_SQL(a, b, c)                                                                        \
    "INSERT INTO pawl_fence (resource, token, owner) VALUES (" a ", " b ", " c ") "               \
    "ON CONFLICT (resource) DO UPDATE SET token = excluded.token, owner = excluded.owner "        \
    "WHERE excluded.token > pawl_fence.token "                                                    \
    "OR (excluded.token = pawl_fence.token AND excluded.owner = pawl_fence.owner)"

/* An UPDATE and not a SELECT: it takes the row's lock, so that no claim can pass between this
 * check and the commit. */
#define CHECK_SQL(a, b, c)                                                                        \
    "UPDATE pawl_fence SET token = token WHERE resource = " a " AND token = " b " AND owner = " c

static const char *const statements[2][3] = {
    [PAWL_SQL_SQLITE] = { [PAWL_SQL_TABLE] = TABLE_SQL,
                          [PAWL_SQL_CLAIM] = CLAIM_SQL("?1", "?2", "?3"),
                          [PAWL_SQL_CHECK] = CHECK_SQL("?1", "?2", "?3") },
    [PAWL_SQL_POSTGRESQL] = { [PAWL_SQL_TABLE] = TABLE_SQL,
                              [PAWL_SQL_CLAIM] = CLAIM_SQL("$1", "$2", "$3"),
                              [PAWL_SQL_CHECK] = CHECK_SQL("$1", "$2", "$3") },
};

const char *pawl_fence_sql(enum pawl_sql_dialect dialect, enum pawl_sql_statement statement)
{
    if ((unsigned)dialect > PAWL_SQL_POSTGRESQL || (unsigned)statement > PAWL_SQL_CHECK)
        return NULL;
    return statements[dialect][statement];
}
