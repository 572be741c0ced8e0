/*
 * conf - the router's configuration and the fleet that it describes
 * (spec router, sections 2, 3, 5 and 10).
 */
#ifndef AM_ROUTER_CONF_H
#define AM_ROUTER_CONF_H

#include <jv.h>
#include <stddef.h>
#include <stdint.h>

#define AM_ROUTER_NAME "amap.router"	/* the local part that nobody else may have */

struct amr_list {
	uint32_t *v;		/* indexes of members, ascending */
	size_t n;
};

struct amr_member {
	char *name, *root;
	int namespaced;		/* lanes named inbound and outbound, no peer tree */
	int mail_any;		/* its mail list holds ALLOW_ANY */
	struct amr_list mail;	/* whom it would exchange mail with */
	struct amr_list senders;	/* who may task it */
	jv mail_names, sender_names;	/* as written; gone once resolved */
};

struct amr_conf {
	char *state_dir, *instances_dir, *selected_json, *domain, *intake_dir;
	long file_max, files_max, total_max, exposure_window, reply_window;
	jv outcome_ids;		/* array of strings */
	int task_all, mail_all;
	struct amr_member *members;	/* by byte order of name */
	uint32_t *folded;		/* the same, ignoring case */
	size_t n;
	int verdict_missing, instances_unreadable;
	jv report;		/* lines of the discovery report; empty when clean */
	unsigned char text_digest[32], found_digest[32];	/* what it was made from */
};

/*
 * Loads it. NULL when it is refused: why then names the field. When nothing
 * that it depends on has changed since known was loaded, the result is known
 * itself.
 */
struct amr_conf *amr_conf_load(const char *path, struct amr_conf *known, char *why, size_t size);
void amr_conf_free(struct amr_conf *c);

/* -1 when there is none. */
long amr_conf_find(const struct amr_conf *c, const char *name);
/* The member whose address this is, ignoring case; the router's own is nobody's. */
long amr_conf_address(const struct amr_conf *c, const char *address, size_t len);

int amr_conf_may_task(const struct amr_conf *c, size_t from, size_t to);
int amr_conf_may_mail(const struct amr_conf *c, size_t a, size_t b);
/* 1 when it has a delegation lane. */
int amr_conf_has_peer(const struct amr_conf *c, size_t i);

/* A member's address in out, of AM_ADDRESS_MAX bytes; the router's own for NULL. */
#define AM_ADDRESS_MAX 384
const char *amr_conf_address_of(const struct amr_conf *c, const char *name, char out[AM_ADDRESS_MAX]);

int amr_is_instance_name(const char *s, size_t len);

/* For conf.c: reads the text into an empty c; -1 when it is refused. */
int amr_conf_read(struct amr_conf *c, const char *text, size_t len, char *why, size_t size);

/* What discovery found (discover.c, for parse.c). */
struct amr_found {
	char **names;		/* directories, by byte order */
	char *has_state;	/* one flag a name */
	size_t n;
	int unreadable;
	char *verdict;		/* text of the verdict file; NULL when it cannot be read */
	size_t verdict_len;
};
void amr_found_gather(struct amr_found *f, const char *instances_dir, const char *state_dir, const char *selected_json);
void amr_found_free(struct amr_found *f);
void amr_found_digest(const struct amr_found *f, unsigned char out[32]);

struct amr_verdict {
	int known;
	jv selected, declined;	/* objects SLUG -> true */
};
struct amr_verdict amr_verdict_read(const struct amr_found *f);
void amr_verdict_free(struct amr_verdict *v);

/*
 * Owns an object with the arrays admitted (names), skipped, waiting and
 * homeless (report lines).
 */
jv amr_discover(const struct amr_found *f, const struct amr_verdict *v);

#endif
