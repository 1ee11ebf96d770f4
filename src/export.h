/* Makes the calls of <pawl.h>, and only these, visible outside the shared library: the build
 * includes it before every file of the library, which is compiled with hidden visibility.
 * Must not declare anything itself. */
#ifndef PAWLI_EXPORT_H
#define PAWLI_EXPORT_H

#pragma GCC visibility push(default)
#include <pawl.h>
#pragma GCC visibility pop

#endif
