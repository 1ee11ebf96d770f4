/* Owners and the thread's current owner; touches no engine and no store. */
#include "engine/owner.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/owner_text.h"
#include "engine/detail.h"
#include "util/random.h"

#define SCOPES_MAX 32

static _Thread_local const struct pawl_owner *scope[SCOPES_MAX];
static _Thread_local unsigned n_scopes;

struct pawl_owner *pawli_owner_ref(const struct pawl_owner *owner)
{
    struct pawl_owner *shared = (struct pawl_owner *)owner; /* only the count changes */

    atomic_fetch_add_explicit(&shared->refs, 1, memory_order_relaxed);
    return shared;
}

static int make(const char *id, const char *colon, const char *label,
                struct pawl_owner **ret_owner)
{
    size_t len = strlen(id) + strlen(colon) + strlen(label) + 1;
    struct pawl_owner *owner = malloc(sizeof *owner + len);

    if (owner == NULL)
        return pawli_fail(PAWL_ENOMEM, "no memory for an owner");
    atomic_init(&owner->refs, 1);
    (void)snprintf(owner->text, len, "%s%s%s", id, colon, label);
    *ret_owner = owner;
    return 0;
}

int pawl_owner_new(const char *label, struct pawl_owner **ret_owner)
{
    char id[PAWLI_ID_LEN + 1];
    char detail[PAWLI_DETAIL_LEN];
    int rc;

    if (ret_owner == NULL)
        return pawli_fail(PAWL_EUSAGE, "ret_owner is NULL");
    if (label == NULL)
        label = "";
    rc = pawli_label_check(label, detail, sizeof detail);
    if (rc < 0)
        return pawli_fail_text(rc, detail);
    rc = pawli_random_id(id);
    if (rc < 0)
        return pawli_fail(rc, "the system gave no random bytes");
    return make(id, label[0] == '\0' ? "" : ":", label, ret_owner);
}

int pawl_owner_parse(const char *text, struct pawl_owner **ret_owner)
{
    char detail[PAWLI_DETAIL_LEN];
    int rc;

    if (text == NULL || ret_owner == NULL)
        return pawli_fail(PAWL_EUSAGE, "text or ret_owner is NULL");
    rc = pawli_owner_text_check(text, detail, sizeof detail);
    if (rc < 0)
        return pawli_fail_text(rc, detail);
    return make(text, "", "", ret_owner);
}

int pawl_owner_copy(const struct pawl_owner *owner, struct pawl_owner **ret_owner)
{
    if (owner == NULL || ret_owner == NULL)
        return pawli_fail(PAWL_EUSAGE, "owner or ret_owner is NULL");
    *ret_owner = pawli_owner_ref(owner);
    return 0;
}

const char *pawl_owner_text(const struct pawl_owner *owner)
{
    return owner == NULL ? "" : owner->text;
}

void pawl_owner_free(struct pawl_owner *owner)
{
    if (owner == NULL)
        return;
    if (atomic_fetch_sub_explicit(&owner->refs, 1, memory_order_acq_rel) == 1)
        free(owner);
}

int pawl_owner_enter(const struct pawl_owner *owner)
{
    if (owner == NULL)
        return pawli_fail(PAWL_EUSAGE, "owner is NULL");
    if (n_scopes == SCOPES_MAX)
        return pawli_fail(PAWL_EUSAGE, "owner scopes nest at most %d deep", SCOPES_MAX);
    scope[n_scopes++] = owner;
    return 0;
}

int pawl_owner_leave(void)
{
    if (n_scopes == 0)
        return pawli_fail(PAWL_EUSAGE, "this thread is in no owner scope");
    n_scopes--;
    return 0;
}

int pawli_owner_choose(const struct pawl_owner *given, struct pawl_owner **ret_owner)
{
    if (given == NULL && n_scopes > 0)
        given = scope[n_scopes - 1];
    if (given == NULL)
        return pawl_owner_new(NULL, ret_owner);
    *ret_owner = pawli_owner_ref(given);
    return 0;
}
