/* main.c: a program built by CMake with an installed pawl. */
#include <stdio.h>
#include <string.h>

#include <pawl.h>

int main(void)
{
    printf("pawl %s: %s\n", pawl_version(), pawl_result_text(0));
    return strcmp(pawl_version(), PAWL_VERSION) != 0;
}
