/* The list of rights. docs/protocol.md, "Rights", has the same list; a test compares them. */
#include "rights.h"

#include "text.h"

#define ALL N_("nothing works")
#define WAIT N_("waiting falls back to asking again and again")
#define WAITING N_("waiting for a lock")
#define LOOK N_("less can be seen of the server; locks work")

/* Probes are tried in this order, on one key: a string that expires at once, or nothing. */
const struct right rights[] = {
    { "+eval", "EVAL return%201 0", ALL },
    { "+evalsha", "EVALSHA 0000000000000000000000000000000000000000 0", ALL },
    { "+time", "TIME", ALL },
    { "+client|setname", "CLIENT SETNAME pawl-doctor", LOOK },
    { "+role", "ROLE", LOOK },
    { "+info", "INFO server", LOOK },
    { "+select", NULL, N_("databases other than 0") },
    { "+ping", "PING", WAIT },
    { "+subscribe", NULL, WAIT },
    { "+publish", "PUBLISH %spawl:i:doctor x", WAIT },
    { "+exists", "EXISTS %s", ALL },
    { "+type", "TYPE %s", ALL },
    { "+set", "SET %s x PX 1000", ALL },
    /* On a string: what is permitted answers WRONGTYPE, and writes nothing. */
    { "+hset", "HSET %s x 1", ALL },
    { "+zadd", "ZADD %s 1 x", WAITING },
    { "+getset", "GETSET %s x", ALL },
    { "+pexpire", "PEXPIRE %s 1000", ALL },
    { "+del", "DEL %s", ALL },
    { "+pttl", "PTTL %s", ALL },
    { "+get", "GET %s", ALL },
    { "+getrange", "GETRANGE %s 0 1", N_("locks of other clients are not shown") },
    { "+hmget", "HMGET %s x", ALL },
    { "+hgetall", "HGETALL %s", ALL },
    { "+hlen", "HLEN %s", N_("pawl show and pawl ls") },
    { "+hscan", "HSCAN %s 0", N_("pawl show of a large hash") },
    { "+hdel", "HDEL %s x", ALL },
    { "+zscore", "ZSCORE %s x", WAITING },
    { "+zcount", "ZCOUNT %s 0 1", WAITING },
    { "+zrange", "ZRANGE %s 0 1", WAITING },
    { "+zrevrangebyscore", "ZREVRANGEBYSCORE %s 1 0", WAITING },
    { "+zrem", "ZREM %s x", WAITING },
    { "+zremrangebyscore", "ZREMRANGEBYSCORE %s 0 1", WAITING },
};

const size_t n_rights = sizeof rights / sizeof rights[0];
