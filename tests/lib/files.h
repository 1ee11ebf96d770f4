/* Folders and small files of tests. */
#ifndef TESTS_LIB_FILES_H
#define TESTS_LIB_FILES_H

#include <stddef.h>

/* A new folder below TMPDIR or /tmp. */
void make_folder(char *ret_path, size_t len);
/* With all that is in it. */
void remove_folder(const char *path);
void write_file(const char *path, const char *text);
/* NULL if it cannot be read; else free it. */
char *read_file(const char *path, size_t *ret_len);
/* To stderr, for the log of a failed test. */
void print_file(const char *path);

#endif
