/* Rows of locks for ls and watch. */
#ifndef PAWL_CLI_TABLE_H
#define PAWL_CLI_TABLE_H

#include <stdbool.h>
#include <stdio.h>

#include "scan.h"

/* The heading, and one row. @columns: of the terminal, 0 for no limit. */
void table_head(FILE *out, int columns);
void table_row(FILE *out, const struct scan_row *row, int columns, bool colour);

#endif
