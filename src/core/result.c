/* result.c: names, sentences and classes of results, all from the one map in pawl.h, and the
 * version. Must not know where a result came from. */
#include <pawl.h>

const char *pawl_version(void)
{
    return PAWL_VERSION;
}

const char *pawl_result_text(int result)
{
    switch (result) {
#define RESULT_TEXT(name, number, class_, text)                                                   \
    case (number):                                                                                \
        return text;
        PAWL_RESULT_MAP(RESULT_TEXT)
#undef RESULT_TEXT
    default:
        return "unknown result";
    }
}

const char *pawl_result_name(int result)
{
    switch (result) {
#define RESULT_NAME(name, number, class_, text)                                                   \
    case (number):                                                                                \
        return "PAWL_" #name;
        PAWL_RESULT_MAP(RESULT_NAME)
#undef RESULT_NAME
    default:
        return "PAWL_?";
    }
}

enum pawl_class pawl_result_class(int result)
{
    switch (result) {
#define RESULT_CLASS(name, number, class_, text)                                                  \
    case (number):                                                                                \
        return PAWL_CLASS_##class_;
        PAWL_RESULT_MAP(RESULT_CLASS)
#undef RESULT_CLASS
    default:
        return PAWL_CLASS_USAGE;
    }
}
