/*
 * log - the router's log on standard error (spec router, section 21).
 *
 * "2026-11-29 15:35:12,123 INFO amap_router_local: TEXT", local time, one
 * line a call. Bytes from others go through am_quote first.
 */
#ifndef AM_ROUTER_LOG_H
#define AM_ROUTER_LOG_H

enum amr_level { AM_DEBUG, AM_INFO, AM_WARNING, AM_ERROR };

extern enum amr_level amr_log_threshold;		/* AM_INFO unless set */

/* logger is "" for the main one, or ".outbound", ".outcomes", ".firstsight", ".exposure", ".reset". */
/* errno stays as it is. */
void amr_log(enum amr_level level, const char *logger, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#endif
