#include <errno.h>
#include <fcntl.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "file.h"
#include "json.h"
#include "router/conf.h"

/* ---- names ---- */

static int
letter_or_digit(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

int
amr_is_instance_name(const char *s, size_t len)
{
	if (len == 0 || len > 64 || !letter_or_digit(s[0]))
		return 0;
	for (size_t i = 1; i < len; i++)
		if (!letter_or_digit(s[i]) && (s[i] == '\0' || strchr("._-", s[i]) == NULL))
			return 0;
	return 1;
}

long
amr_conf_find(const struct amr_conf *c, const char *name)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int d = strcmp(name, c->members[mid].name);

		if (d == 0)
			return (long)mid;
		if (d < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return -1;
}

static long
find_folded(const struct amr_conf *c, const char *name)
{
	size_t lo = 0, hi = c->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		int d = strcasecmp(name, c->members[c->folded[mid]].name);

		if (d == 0)
			return (long)c->folded[mid];
		if (d < 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	return -1;
}

long
amr_conf_address(const struct amr_conf *c, const char *address, size_t len)
{
	const char *domain = c->domain != NULL ? c->domain : "local", *at = memchr(address, '@', len);
	char name[80];
	size_t n;

	if (at == NULL || len - (size_t)(at - address) - 1 != strlen(domain) ||
	    strncasecmp(at + 1, domain, strlen(domain)) != 0)
		return -1;
	n = (size_t)(at - address);
	if (c->domain == NULL) {
		if (n < 6 || strncasecmp(address, "agent.", 6) != 0)
			return -1;
		address += 6;
		n -= 6;
	}
	if (!amr_is_instance_name(address, n))
		return -1;
	memcpy(name, address, n);
	name[n] = '\0';
	return strcasecmp(name, AM_ROUTER_NAME) == 0 ? -1 : find_folded(c, name);
}

const char *
amr_conf_address_of(const struct amr_conf *c, const char *name, char out[AM_ADDRESS_MAX])
{
	if (name == NULL)
		name = AM_ROUTER_NAME;
	if (c->domain != NULL)
		snprintf(out, AM_ADDRESS_MAX, "%s@%s", name, c->domain);
	else
		snprintf(out, AM_ADDRESS_MAX, "agent.%s@local", name);
	return out;
}

/* ---- the two graphs ---- */

static int
holds(const struct amr_list *l, size_t i)
{
	size_t lo = 0, hi = l->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (l->v[mid] == i)
			return 1;
		if (l->v[mid] > i)
			hi = mid;
		else
			lo = mid + 1;
	}
	return 0;
}

int
amr_conf_may_task(const struct amr_conf *c, size_t from, size_t to)
{
	if (c->task_all)
		return from != to && !c->members[from].namespaced && !c->members[to].namespaced;
	return holds(&c->members[to].senders, from);
}

int
amr_conf_may_mail(const struct amr_conf *c, size_t a, size_t b)
{
	const struct amr_member *m = c->members;

	if (c->mail_all)
		return a != b;
	return (m[a].mail_any || holds(&m[a].mail, b)) && (m[b].mail_any || holds(&m[b].mail, a));
}

int
amr_conf_has_peer(const struct amr_conf *c, size_t i)
{
	return c->domain != NULL && !c->members[i].namespaced;
}

/* ---- loading ---- */

void
amr_conf_free(struct amr_conf *c)
{
	if (c == NULL)
		return;
	for (size_t i = 0; i < c->n; i++) {
		struct amr_member *m = &c->members[i];

		free(m->name);
		free(m->root);
		free(m->mail.v);
		free(m->senders.v);
		jv_free(m->mail_names);
		jv_free(m->sender_names);
	}
	free(c->members);
	free(c->folded);
	free(c->state_dir);
	free(c->instances_dir);
	free(c->selected_json);
	free(c->domain);
	free(c->intake_dir);
	jv_free(c->outcome_ids);
	jv_free(c->report);
	free(c);
}

static void
digest(const char *text, size_t len, unsigned char out[32])
{
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)text, len);
	SHA256Final(out, &ctx);
}

void
amr_found_digest(const struct amr_found *f, unsigned char out[32])
{
	SHA2_CTX ctx;

	SHA256Init(&ctx);
	SHA256Update(&ctx, (const uint8_t *)(f->unreadable ? "u" : "r"), 1);
	for (size_t i = 0; i < f->n; i++) {
		SHA256Update(&ctx, (const uint8_t *)f->names[i], strlen(f->names[i]) + 1);
		SHA256Update(&ctx, (const uint8_t *)&f->has_state[i], 1);
	}
	if (f->verdict != NULL)
		SHA256Update(&ctx, (const uint8_t *)f->verdict, f->verdict_len);
	SHA256Update(&ctx, (const uint8_t *)(f->verdict != NULL ? "v" : "n"), 1);
	SHA256Final(out, &ctx);
}

static int
still_true(const struct amr_conf *known, const unsigned char text[32])
{
	unsigned char now[32];
	struct amr_found f;

	if (known == NULL || memcmp(known->text_digest, text, 32) != 0)
		return 0;
	if (known->instances_dir == NULL)
		return 1;
	amr_found_gather(&f, known->instances_dir, known->state_dir, known->selected_json);
	amr_found_digest(&f, now);
	amr_found_free(&f);
	return memcmp(known->found_digest, now, 32) == 0;
}

struct amr_conf *
amr_conf_load(const char *path, struct amr_conf *known, char *why, size_t size)
{
	int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	unsigned char text_digest[32];
	struct amr_conf *c;
	size_t len;
	char *text = fd < 0 ? NULL : am_read_fd(fd, AM_JSON_MAX, &len);

	if (text == NULL)
		snprintf(why, size, "%s", strerror(errno));
	if (fd >= 0)
		close(fd);
	if (text == NULL)
		return NULL;
	digest(text, len, text_digest);
	if (still_true(known, text_digest)) {
		free(text);
		return known;
	}
	if ((c = calloc(1, sizeof *c)) == NULL)
		abort();
	c->outcome_ids = jv_invalid();
	c->report = jv_array();
	memcpy(c->text_digest, text_digest, 32);
	if (amr_conf_read(c, text, len, why, size) != 0) {
		amr_conf_free(c);
		c = NULL;
	}
	free(text);
	return c;
}
