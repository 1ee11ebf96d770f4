/* Folders and small files of tests; see files.h. */
#include "lib/files.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

void make_folder(char *ret_path, size_t len)
{
    const char *base = getenv("TMPDIR");

    snprintf(ret_path, len, "%s/pawl-XXXXXX", base == NULL ? "/tmp" : base);
    if (mkdtemp(ret_path) == NULL)
        fail_msg("no folder %s", ret_path);
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk)
{
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

void remove_folder(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void write_file(const char *path, const char *text)
{
    FILE *f = fopen(path, "we");

    if (f == NULL || fputs(text, f) < 0)
        fail_msg("cannot write %s", path);
    fclose(f);
}

char *read_file(const char *path, size_t *ret_len)
{
    FILE *f = fopen(path, "re");
    char *text = NULL;
    size_t size = 0;
    ssize_t len = f == NULL ? -1 : getdelim(&text, &size, -1, f);

    if (f != NULL)
        fclose(f);
    if (len < 0) {
        free(text);
        return NULL;
    }
    if (ret_len != NULL)
        *ret_len = (size_t)len;
    return text;
}

void print_file(const char *path)
{
    char *text = read_file(path, NULL);

    fprintf(stderr, "%s:\n%s\n", path, text == NULL ? "(cannot be read)" : text);
    free(text);
}
