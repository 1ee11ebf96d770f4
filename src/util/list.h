/* Intrusive doubly linked list; the head is a node of its own. */
#ifndef PAWLI_UTIL_LIST_H
#define PAWLI_UTIL_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct pawli_list {
    struct pawli_list *next;
    struct pawli_list *prev;
};

/* The object of @type whose member @member is the node @node. */
#define PAWLI_CONTAINER(node, type, member)                                                       \
    ((type *)(void *)(((char *)(node)) - offsetof(type, member)))

static inline void pawli_list_init(struct pawli_list *list)
{
    list->next = list;
    list->prev = list;
}

static inline bool pawli_list_empty(const struct pawli_list *list)
{
    return list->next == list;
}

static inline void pawli_list_append(struct pawli_list *list, struct pawli_list *node)
{
    node->prev = list->prev;
    node->next = list;
    list->prev->next = node;
    list->prev = node;
}

/* Leaves the node as an empty list, so that removing twice is harmless. */
static inline void pawli_list_remove(struct pawli_list *node)
{
    node->prev->next = node->next;
    node->next->prev = node->prev;
    pawli_list_init(node);
}

/* The first node, taken out; NULL if the list is empty. */
static inline struct pawli_list *pawli_list_pop(struct pawli_list *list)
{
    struct pawli_list *node = list->next;

    if (node == list)
        return NULL;
    pawli_list_remove(node);
    return node;
}

/* Move all nodes of @from to the end of @to. */
static inline void pawli_list_splice(struct pawli_list *to, struct pawli_list *from)
{
    if (pawli_list_empty(from))
        return;
    from->next->prev = to->prev;
    to->prev->next = from->next;
    from->prev->next = to;
    to->prev = from->prev;
    pawli_list_init(from);
}

#endif
