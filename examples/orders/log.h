/* log.h: one readable line per event on stderr or in a file; may be called from any thread. */
#ifndef ORDERS_LOG_H
#define ORDERS_LOG_H

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* @path      NULL or "": stderr; else appended to, so that several instances may share a file
 * @instance  copied; printed in every line
 * Returns 0, or -1 with errno set. */
int log_open(const char *path, const char *instance, enum log_level level);
void log_close(void);

int log_wants(enum log_level level);

/* "2026-11-29T15:27:53.123456Z us=1764430073123456 LEVEL INSTANCE text\n", one write per line.
 * Control characters in the text become '?', so that nobody can forge a line. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
