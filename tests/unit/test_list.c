/* Tests of the intrusive list. */
#include "unit.h"

#include "util/list.h"

struct item {
    int number;
    struct pawli_list link;
};

static void fill(struct pawli_list *list, struct item *items, int n)
{
    pawli_list_init(list);
    for (int i = 0; i < n; i++) {
        items[i].number = i;
        pawli_list_append(list, &items[i].link);
    }
}

static void expect(struct pawli_list *list, const int *numbers, size_t n)
{
    struct pawli_list *node = list->next;

    for (size_t i = 0; i < n; i++, node = node->next) {
        assert_ptr_not_equal(node, list);
        assert_int_equal(PAWLI_CONTAINER(node, struct item, link)->number, numbers[i]);
        assert_ptr_equal(node->next->prev, node);
    }
    assert_ptr_equal(node, list);
    assert_int_equal(pawli_list_empty(list), n == 0);
}

static void nodes_come_in_the_order_of_appending(void **state)
{
    static const int all[] = { 0, 1, 2 };
    struct pawli_list list;
    struct item items[3];

    (void)state;
    fill(&list, items, 3);
    expect(&list, all, 3);
}

static void removing_twice_is_harmless(void **state)
{
    static const int rest[] = { 0, 2 };
    struct pawli_list list;
    struct item items[3];

    (void)state;
    fill(&list, items, 3);
    pawli_list_remove(&items[1].link);
    pawli_list_remove(&items[1].link);
    assert_true(pawli_list_empty(&items[1].link));
    expect(&list, rest, 2);
}

static void pop_gives_the_first_and_then_nothing(void **state)
{
    struct pawli_list list;
    struct item items[2];

    (void)state;
    fill(&list, items, 2);
    assert_ptr_equal(pawli_list_pop(&list), &items[0].link);
    assert_ptr_equal(pawli_list_pop(&list), &items[1].link);
    assert_null(pawli_list_pop(&list));
}

static void splice_moves_all_to_the_end(void **state)
{
    static const int both[] = { 0, 1, 0, 1, 2 };
    struct pawli_list to;
    struct pawli_list from;
    struct item first[2];
    struct item second[3];

    (void)state;
    fill(&to, first, 2);
    fill(&from, second, 3);
    pawli_list_splice(&to, &from);
    expect(&to, both, 5);
    expect(&from, NULL, 0);
    pawli_list_splice(&to, &from); /* nothing */
    expect(&to, both, 5);
    pawli_list_splice(&from, &to);
    expect(&from, both, 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_come_in_the_order_of_appending),
        cmocka_unit_test(removing_twice_is_harmless),
        cmocka_unit_test(pop_gives_the_first_and_then_nothing),
        cmocka_unit_test(splice_moves_all_to_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
