#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file.h"
#include "id.h"
#include "router/console.h"
#include "router/page.h"
#include "router/request.h"
#include "router/status.h"

#define SHOWN_MAX 50		/* rows of one list */
#define RECORD_MAX 65536
#define MESSAGE_MAX (8u << 20)

/* ---- the fleet ---- */

static void
names(FILE *fp, const struct amr_conf *c, size_t of, int (*may)(const struct amr_conf *, size_t, size_t))
{
	const char *sep = "<td>";

	for (size_t i = 0; i < c->n; i++)
		if (i != of && may(c, i, of)) {
			fputs(sep, fp);
			amr_page_text(fp, c->members[i].name);
			sep = ", ";
		}
	fprintf(fp, "%s</td>", *sep == '<' ? "<td>" : "");
}

static void
members(FILE *fp, const struct amr_conf *c, jv status)
{
	static const char *const columns[] = { "member", "address", "tasked by", "mail with", "drained", "accepted", "rejected",
	    "for the operator", "quarantined", "errors", "waiting", "since", "last error", NULL };
	static const char *const totals[] = { "drained", "accepted", "rejected", "queued_for_human", "quarantined",
	    "outbound_errored", NULL };
	jv all = am_get(status, "instances", JV_KIND_OBJECT);
	char address[AM_ADDRESS_MAX];

	amr_page_head(fp, "Members", columns);
	for (size_t i = 0; i < c->n; i++) {
		jv in = am_get(all, c->members[i].name, JV_KIND_OBJECT), t = am_get(in, "totals", JV_KIND_OBJECT);

		fprintf(fp, "<tr><th>");
		amr_page_text(fp, c->members[i].name);
		fprintf(fp, "</th><td>");
		amr_page_text(fp, amr_conf_address_of(c, c->members[i].name, address));
		fprintf(fp, "</td>");
		names(fp, c, i, amr_conf_may_task);
		names(fp, c, i, amr_conf_may_mail);
		for (const char *const *k = totals; *k != NULL; k++)
			amr_page_cell(fp, t, *k);
		amr_page_cell(fp, in, "held");
		amr_page_cell(fp, in, "held_oldest_ts");
		amr_page_cell(fp, in, "last_error_ts");
		fprintf(fp, "</tr>\n");
		jv_free(t);
		jv_free(in);
	}
	fprintf(fp, "</table>\n");
	jv_free(all);
}

/* What the sandboxes said about placed messages. */
static void
reported(FILE *fp, const struct amr_conf *c, jv status, const char *key, const char *title, const char *what, const char *when)
{
	const char *const columns[] = { "at", "said", "notice", "from", "to", NULL };
	jv all = am_get(status, "instances", JV_KIND_OBJECT);

	amr_page_head(fp, title, columns);
	for (size_t i = 0; i < c->n; i++) {
		jv in = am_get(all, c->members[i].name, JV_KIND_OBJECT), list = am_get(in, key, JV_KIND_ARRAY);
		int n = jv_is_valid(list) ? jv_array_length(jv_copy(list)) : 0;

		for (int k = n > SHOWN_MAX ? n - SHOWN_MAX : 0; k < n; k++) {
			jv a = jv_array_get(jv_copy(list), k);

			fprintf(fp, "<tr>");
			amr_page_cell(fp, a, when);
			amr_page_cell(fp, a, what);
			amr_page_cell(fp, a, "notice_id");
			amr_page_cell(fp, a, "sender");
			amr_page_cell(fp, a, "recipient");
			fprintf(fp, "</tr>\n");
			jv_free(a);
		}
		jv_free(list);
		jv_free(in);
	}
	fprintf(fp, "</table>\n");
	jv_free(all);
}

/* ---- what was written ---- */

/* The latest or the oldest files of one kind over all members; a bounded number. */
struct found {
	size_t member;
	char name[256];
	struct timespec when;
};

struct list {
	struct found v[SHOWN_MAX];
	size_t n, all;
	int latest;
};

/* 1 when a comes first. */
static int
before(const struct list *l, const struct found *a, const struct found *b)
{
	const struct timespec *x = l->latest ? &b->when : &a->when, *y = l->latest ? &a->when : &b->when;

	return x->tv_sec != y->tv_sec ? x->tv_sec < y->tv_sec : x->tv_nsec < y->tv_nsec;
}

static void
consider(struct list *l, const struct found *f)
{
	size_t i = l->n;

	l->all++;
	while (i > 0 && before(l, f, &l->v[i - 1]))
		i--;
	if (i == SHOWN_MAX)
		return;
	l->n += l->n < SHOWN_MAX;
	memmove(l->v + i + 1, l->v + i, (l->n - 1 - i) * sizeof *l->v);
	l->v[i] = *f;
}

static void
gather(struct list *l, const struct amr_router *r, const char *sub, const char *prefix)
{
	for (size_t i = 0; i < r->conf->n; i++) {
		char path[256];
		struct dirent *e;
		struct stat st;
		int fd;
		DIR *d;

		snprintf(path, sizeof path, "%s/%s", r->conf->members[i].name, sub);
		fd = am_open_beneath(r->state, path, O_RDONLY | O_DIRECTORY, 0);
		if ((d = fd < 0 ? NULL : fdopendir(fd)) == NULL) {
			if (fd >= 0)
				close(fd);
			continue;
		}
		while ((e = readdir(d)) != NULL) {
			struct found f = { .member = i };
			size_t len = strlen(e->d_name);

			if (strncmp(e->d_name, prefix, strlen(prefix)) != 0 || len < 5 || strcmp(e->d_name + len - 5, ".json") != 0 ||
			    fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode))
				continue;
			strlcpy(f.name, e->d_name, sizeof f.name);
			f.when = st.st_mtim;
			consider(l, &f);
		}
		closedir(d);
	}
}

static void
body(FILE *fp, jv object)
{
	jv v = am_get(object, "body_text", JV_KIND_STRING);

	fprintf(fp, "</dl>\n<pre>");
	amr_page_value(fp, v, 1);
	fprintf(fp, "</pre></article>\n");
	jv_free(v);
}

static void
begin_article(FILE *fp, const struct found *f, const char *who, const char *name)
{
	char ts[21];

	am_timestamp(f->when.tv_sec, ts);
	fprintf(fp, "<article><dl><dt>at</dt><dd>%s</dd><dt>%s</dt><dd>", ts, who);
	amr_page_text(fp, name);
	fprintf(fp, "</dd>");
}

static void
more(FILE *fp, const struct list *l)
{
	if (l->all > l->n)
		fprintf(fp, "<p>and %zu more</p>\n", l->all - l->n);
	else if (l->n == 0)
		fprintf(fp, "<p>none</p>\n");
}

static void
waiting(FILE *fp, const struct amr_router *r)
{
	struct list l = { .latest = 0 };
	char path[512];

	fprintf(fp, "<h2>Requests that wait for you</h2>\n");
	gather(&l, r, "held", "req-");
	for (size_t i = 0; i < l.n; i++) {
		const char *from = r->conf->members[l.v[i].member].name;
		jv doc, draft;

		snprintf(path, sizeof path, "%s/held/%s", from, l.v[i].name);
		doc = am_json_object_at(r->state, path, AM_REQUEST_MAX);
		draft = am_get(doc, "draft", JV_KIND_OBJECT);
		begin_article(fp, &l.v[i], "from", from);
		amr_page_term(fp, "request", doc, "req_id");
		amr_page_term(fp, "to", draft, "to");
		amr_page_term(fp, "cc", draft, "cc");
		amr_page_term(fp, "subject", draft, "subject");
		body(fp, draft);
		jv_free(draft);
		jv_free(doc);
	}
	more(fp, &l);
}

/* The message as it lies in the recipient's tree, where others may have written. */
static jv
message(const struct amr_router *r, const struct found *f, jv ledger)
{
	const struct amr_member *m = &r->conf->members[f->member];
	const char *tree = am_str(ledger, "tree");
	int root = amr_root(m);
	char path[512];
	jv doc;

	if (root < 0)
		return jv_invalid();
	snprintf(path, sizeof path, "%s/messages/%s", amr_lane(m, tree != NULL && strcmp(tree, "peer") == 0 ? 'p' : 'i'), f->name);
	doc = am_json_object_at(root, path, MESSAGE_MAX);
	close(root);
	return doc;
}

static void
latest(FILE *fp, const struct amr_router *r)
{
	struct list l = { .latest = 1 };
	char path[512];

	fprintf(fp, "<h2>Latest messages</h2>\n");
	gather(&l, r, "delivered", "notice-");
	for (size_t i = 0; i < l.n; i++) {
		const char *to = r->conf->members[l.v[i].member].name;
		jv ledger, doc;

		snprintf(path, sizeof path, "%s/delivered/%s", to, l.v[i].name);
		ledger = am_json_object_at(r->state, path, RECORD_MAX);
		doc = message(r, &l.v[i], ledger);
		begin_article(fp, &l.v[i], "to", to);
		amr_page_term(fp, "from", ledger, "from_address");
		amr_page_term(fp, "tree", ledger, "tree");
		amr_page_term(fp, "subject", doc, "subject");
		body(fp, doc);
		jv_free(doc);
		jv_free(ledger);
	}
	more(fp, &l);
}

/* ---- the page ---- */

static void
discovery(FILE *fp, jv report)
{
	int n = jv_array_length(jv_copy(report));

	if (n == 0)
		return;
	fprintf(fp, "<h2>Discovery</h2>\n<pre>");
	for (int i = 0; i < n; i++) {
		jv text = jv_array_get(jv_copy(report), i);

		amr_page_value(fp, text, 1);
		putc('\n', fp);
		jv_free(text);
	}
	fprintf(fp, "</pre>\n");
}

static void
host(FILE *fp, jv facts)
{
	static const char *const columns[] = { "fact", "value", NULL };

	if (jv_get_kind(facts) != JV_KIND_OBJECT)
		return;
	amr_page_head(fp, "Host", columns);
	for (int i = jv_object_iter(facts); jv_object_iter_valid(facts, i); i = jv_object_iter_next(facts, i)) {
		jv key = jv_object_iter_key(facts, i), v = jv_object_iter_value(facts, i);

		fprintf(fp, "<tr><th>");
		amr_page_value(fp, key, 0);
		fprintf(fp, "</th><td>");
		amr_page_value(fp, v, 0);
		fprintf(fp, "</td></tr>\n");
		jv_free(key);
		jv_free(v);
	}
	fprintf(fp, "</table>\n");
}

void
amr_console(FILE *fp, const struct amr_router *r, jv status, jv facts)
{
	char line[256], ts[21];

	am_timestamp(time(NULL), ts);
	amr_status_health(status, line, sizeof line);
	fprintf(fp, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
	    "<title>Fleet</title>\n<style>body{font:16px/1.4 system-ui,sans-serif;margin:2rem}table{border-collapse:collapse}"
	    "td,th{border:1px solid #888;padding:.2rem .5rem;text-align:left}article{border-top:1px solid #888;margin-top:1rem}"
	    "dl{display:grid;grid-template-columns:max-content auto;gap:.2rem 1rem}dd{margin:0}"
	    "pre{white-space:pre-wrap;overflow-wrap:anywhere}</style></head>\n<body><h1>Fleet ");
	amr_page_text(fp, r->conf->domain != NULL ? r->conf->domain : "without a domain");
	fprintf(fp, "</h1>\n<p>");
	amr_page_text(fp, line);
	fprintf(fp, "</p>\n<dl><dt>this page</dt><dd>%s</dd>", ts);
	amr_page_term(fp, "running since", status, "started_ts");
	amr_page_term(fp, "polls", status, "polls");
	amr_page_term(fp, "process", status, "pid");
	fprintf(fp, "</dl>\n");
	discovery(fp, r->conf->report);
	members(fp, r->conf, status);
	waiting(fp, r);
	reported(fp, r->conf, status, "placed_but_denied", "Placed, and not delivered as a sandbox says", "outcome", "recorded_ts");
	reported(fp, r->conf, status, "peer_alerts", "Alerts", "kind", "ts");
	latest(fp, r);
	host(fp, facts);
	fprintf(fp, "</body></html>\n");
}
