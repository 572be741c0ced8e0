#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "id.h"
#include "router/deliver.h"
#include "router/expose.h"
#include "router/log.h"
#include "router/outcome.h"

#define FILES_MAX 1000		/* an instance, a pass */
#define LISTED_MAX 65536	/* outcome files listed of one directory; other names hide none of them */
#define ALERTS_KEPT 50

const char *const amr_outcome_names[AM_OUTCOMES] = {
	"delivered", "held", "denied", "refused", "ambiguous_target", "inject_failed"
};

/* One outcome file in hand. */
struct report {
	struct amr_router *r;
	struct amr_inst *in;
	char nid[AM_NOTICE_ID + 1];
	enum amr_outcome outcome;
	jv doc, ledger;
	char now[21];
};

/* ---- judging ---- */

int
amr_outcome_judge(jv doc, const char *nid, enum amr_outcome *outcome)
{
	static const char *const known[] = { "outcome", "ts", "tree", "notice_id", "detail", NULL };
	const char *o = am_str(doc, "outcome"), *tree = am_str(doc, "tree"), *id = am_str(doc, "notice_id");
	jv ts = am_get(doc, "ts", JV_KIND_STRING), detail = am_get(doc, "detail", JV_KIND_STRING);
	int ok = jv_get_kind(doc) == JV_KIND_OBJECT && am_unknown_key(doc, known) == NULL && o != NULL &&
	    tree != NULL && strcmp(tree, "peer") == 0 && id != NULL && strcmp(id, nid) == 0 &&
	    jv_is_valid(ts) && jv_string_length_bytes(jv_copy(ts)) > 0 && (jv_is_valid(detail) || !am_has(doc, "detail"));

	jv_free(ts);
	jv_free(detail);
	for (int i = 0; ok && i < AM_OUTCOMES; i++)
		if (strcmp(o, amr_outcome_names[i]) == 0) {
			*outcome = (enum amr_outcome)i;
			return 0;
		}
	return -1;
}

static int
is_outcome_name(const char *name, char nid[AM_NOTICE_ID + 1])
{
	if (strlen(name) != 5 + AM_NOTICE_ID + 5 || strncmp(name, "peer-", 5) != 0 ||
	    strspn(name + 5, "0123456789abcdef") != AM_NOTICE_ID || strcmp(name + 5 + AM_NOTICE_ID, ".json") != 0)
		return 0;
	memcpy(nid, name + 5, AM_NOTICE_ID);
	nid[AM_NOTICE_ID] = '\0';
	return 1;
}

jv
amr_outcome_ledger(const struct amr_router *r, const struct amr_inst *in, const char *nid)
{
	char path[128], *text;
	const char *tree;
	size_t len;
	jv doc;

	snprintf(path, sizeof path, "delivered/notice-%s.json", nid);
	if ((text = amr_state_read(r, in->name, path, AM_OUTCOME_MAX, &len)) == NULL)
		return jv_invalid();
	doc = am_json_parse(text, len);
	free(text);
	tree = am_str(doc, "tree");
	if (tree != NULL && strcmp(tree, "peer") == 0)
		return doc;
	jv_free(doc);
	errno = ENOENT;
	return jv_invalid();
}

/* ---- telling ---- */

jv
amr_outcome_member(jv doc, const char *key)
{
	jv v = am_get(doc, key, JV_KIND_STRING);

	return jv_is_valid(v) ? v : jv_null();
}

static void
discard(struct report *p, const char *cause)
{
	jv line = am_set_str(jv_object(), "event", "outcome_discarded");

	line = am_set_str(line, "tree", "peer");
	line = am_set_str(line, "notice_id", p->nid);
	line = am_set_str(line, "cause", cause);
	line = am_set(line, "detail", jv_null());
	if (amr_audit(p->r, p->in->name, p->now, line) != 0)
		amr_log(AM_WARNING, ".outcomes", "audit of %s: %s", p->in->name, strerror(errno));
	amr_count(p->in, AM_PEER_DISCARDED);
}

static void
alert(struct report *p)
{
	jv a = am_set_str(jv_object(), "kind", amr_outcome_names[p->outcome]);
	int n;

	a = am_set_str(a, "notice_id", p->nid);
	a = am_set(a, "sender", amr_outcome_member(p->ledger, "from_instance"));
	a = am_set_str(a, "recipient", p->in->name);
	a = am_set_str(a, "ts", p->now);
	p->in->pass_alerts = jv_array_append(p->in->pass_alerts, jv_copy(a));
	if (!jv_is_valid(p->in->alerts))
		p->in->alerts = jv_array();
	p->in->alerts = jv_array_append(p->in->alerts, a);
	n = jv_array_length(jv_copy(p->in->alerts));
	if (n > ALERTS_KEPT)
		p->in->alerts = jv_array_slice(p->in->alerts, n - ALERTS_KEPT, n);
}

/* Nothing that the receiving side wrote stands in it. */
static jv
status_text(struct report *p)
{
	const char *name = amr_outcome_names[p->outcome];
	char address[AM_ADDRESS_MAX];

	return jv_string_fmt("The sandbox of the recipient reported that your message was not delivered to its session.\n"
	    "reported outcome: %s\npeer message id: %s\nrecipient: %s\nreported at: %s\n%s\n", name, p->nid,
	    amr_conf_address_of(p->r->conf, p->in->name, address), p->now,
	    p->outcome == AM_REFUSED ? "By that sandbox's account the message was refused; no cause is known here." :
	    "By that sandbox's account the message was denied by its own policy.");
}

static void
status_notice(struct report *p)
{
	const char *sender = am_str(p->ledger, "from_instance");
	struct amr_inst *to = sender == NULL ? NULL : amr_inst_find(p->r, sender);
	jv subject = jv_string_fmt("Not delivered: %s", amr_outcome_names[p->outcome]), body = status_text(p), audit;
	struct amr_letter l = { .subject = subject, .body = body, .in_reply_to = p->nid, .req_id = "",
	    .exposure = jv_invalid() };
	enum amr_placed placed = AM_FAILED;
	char address[AM_ADDRESS_MAX], id[AM_NOTICE_ID + 1];
	struct amr_inbox_mark mark;

	audit = am_set_str(jv_object(), "event", "dsn_sent");
	audit = am_set(audit, "subject", jv_copy(subject));
	audit = am_set_str(audit, "outcome", amr_outcome_names[p->outcome]);
	audit = am_set_str(audit, "peer_notice_id", p->nid);
	l.audit = am_set_str(audit, "peer_recipient", amr_conf_address_of(p->r->conf, p->in->name, address));
	am_random_hex(id, AM_NOTICE_ID / 2);
	if (to != NULL && to->at >= 0) {
		mark = amr_inbox_before(p->r, to);
		placed = amr_place(p->r, &l, to, 0, id, p->now);
		amr_inbox_after(p->r, to, &mark);
	}
	amr_count(p->in, placed == AM_PLACED ? AM_DSN_SENT : AM_DSN_FAILED);
	jv_free(l.audit);
	jv_free(subject);
	jv_free(body);
}

/* ---- recording ---- */

static jv
record_of(struct report *p)
{
	jv d = am_set_str(jv_object(), "tree", "peer");

	d = am_set_str(d, "notice_id", p->nid);
	d = am_set_str(d, "outcome", amr_outcome_names[p->outcome]);
	d = am_set(d, "outcome_ts", amr_outcome_member(p->doc, "ts"));
	d = am_set(d, "detail", amr_outcome_member(p->doc, "detail"));
	d = am_set_str(d, "recorded_ts", p->now);
	d = am_set(d, "from_instance", amr_outcome_member(p->ledger, "from_instance"));
	d = am_set_str(d, "to_instance", p->in->name);
	return am_set(d, "req_id", amr_outcome_member(p->ledger, "req_id"));
}

/* The record and its audit line stand together, or the file is tried again. */
static int
consume(struct report *p)
{
	int dir = amr_state_dir(p->r, p->in->name, "outcomes"), rc = -1, saved;
	char name[128];
	struct stat st;
	jv line;

	if (dir < 0)
		return -1;
	snprintf(name, sizeof name, "peer-%s.%s.json", p->nid, amr_outcome_names[p->outcome]);
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		discard(p, "duplicate");
		rc = 0;
	} else if (errno == ENOENT && amr_publish_json(dir, name, record_of(p), 0600) == 0) {
		line = am_set_str(jv_object(), "event", "outcome_consumed");
		line = am_set_str(line, "tree", "peer");
		line = am_set_str(line, "notice_id", p->nid);
		line = am_set_str(line, "outcome", amr_outcome_names[p->outcome]);
		line = am_set(line, "outcome_ts", amr_outcome_member(p->doc, "ts"));
		line = am_set(line, "detail", amr_outcome_member(p->doc, "detail"));
		line = am_set(line, "from_instance", amr_outcome_member(p->ledger, "from_instance"));
		line = am_set_str(line, "to_instance", p->in->name);
		if ((rc = amr_audit(p->r, p->in->name, p->now, line)) == 0) {
			amr_count(p->in, (enum amr_counter)(AM_PEER_DELIVERED + (int)p->outcome));
			if (p->outcome == AM_HELD || p->outcome == AM_AMBIGUOUS || p->outcome == AM_REFUSED)
				alert(p);
			if (p->outcome == AM_DENIED_THERE || p->outcome == AM_REFUSED)
				status_notice(p);
		} else {
			saved = errno;
			unlinkat(dir, name, 0);
			errno = saved;
		}
	}
	saved = errno;
	close(dir);
	errno = saved;
	return rc;
}

static int
judge(struct report *p, const char *text, size_t len)
{
	int rc = 0;	/* the file may go */

	p->doc = am_json_parse(text, len);
	p->ledger = jv_invalid();
	am_timestamp(time(NULL), p->now);
	if (!jv_is_valid(p->doc) || amr_outcome_judge(p->doc, p->nid, &p->outcome) != 0) {
		discard(p, "malformed");
	} else {
		p->ledger = amr_outcome_ledger(p->r, p->in, p->nid);
		if (jv_is_valid(p->ledger))
			rc = consume(p);
		else if (amr_is_shortage(errno))
			rc = -1;
		else
			discard(p, "unknown_notice_id");
	}
	jv_free(p->doc);
	jv_free(p->ledger);
	return rc;
}

static void
left_alone(struct amr_inst *in, const char *name, int why)
{
	amr_count(in, AM_PEER_ERRORED);
	if (in->outcomes_left++ > 0)
		return;
	snprintf(in->outcome_left, sizeof in->outcome_left, "%s: %s", name, strerror(why));
}

static void
one_file(struct amr_router *r, struct amr_inst *in, int dir, const char *name)
{
	struct report p = { .r = r, .in = in };
	size_t len;
	char *text;

	is_outcome_name(name, p.nid);
	text = am_read_regular(dir, name, AM_OUTCOME_MAX, &len);
	if (text == NULL && errno == ENOENT)
		return;
	amr_count(in, AM_PEER_SEEN);
	if (text == NULL || judge(&p, text, len) != 0)
		left_alone(in, name, errno);
	else if (unlinkat(dir, name, 0) != 0 && errno != ENOENT)
		left_alone(in, name, errno);
	free(text);
}

static void
one_directory(struct amr_router *r, struct amr_inst *in, int outbox, const char *id, int *left)
{
	char path[128], nid[AM_NOTICE_ID + 1];
	int fd, listed = 0;
	struct amr_names names = { 0 };
	struct dirent *e;
	DIR *d;

	snprintf(path, sizeof path, "ext/%s/outcomes", id);
	if ((fd = am_open_beneath(outbox, path, O_RDONLY | O_DIRECTORY, 0)) < 0)
		return;
	if ((d = fdopendir(fd)) == NULL) {
		close(fd);
		return;
	}
	while ((e = readdir(d)) != NULL && listed < LISTED_MAX)
		if (is_outcome_name(e->d_name, nid)) {
			amr_names_add(&names, e->d_name, NULL);
			listed++;
		}
	amr_names_sort(&names);
	for (size_t i = 0; i < names.n && *left > 0; i++, --*left)
		one_file(r, in, fd, names.text + names.at[i]);
	amr_names_free(&names);
	closedir(d);
}

void
amr_take_outcomes(struct amr_router *r, struct amr_inst *in)
{
	const struct amr_member *m = &r->conf->members[in->at];
	int root = amr_root(m), outbox = -1, left = FILES_MAX, n = jv_array_length(jv_copy(r->conf->outcome_ids));

	in->outcomes_due = 0;
	in->outcomes_left = 0;
	if (root >= 0)
		outbox = am_open_beneath(root, amr_lane(m, 'o'), O_RDONLY | O_DIRECTORY, 0);
	for (int i = 0; i < n && outbox >= 0; i++) {
		jv id = jv_array_get(jv_copy(r->conf->outcome_ids), i);

		one_directory(r, in, outbox, jv_string_value(id), &left);
		jv_free(id);
	}
	if (in->outcomes_left > 0 && in->outcomes_left != in->outcomes_told)	/* told when it changes */
		amr_log(AM_WARNING, ".outcomes", "%s: %ld outcome files are left alone, one of them %s", in->name, in->outcomes_left,
		    in->outcome_left);
	in->outcomes_told = in->outcomes_left;
	if (outbox >= 0)
		close(outbox);
	if (root >= 0)
		close(root);
}
