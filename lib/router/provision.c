#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "json.h"
#include "router/provision.h"
#include "router/router.h"

/* One directory below the root: 0 when it is there in the end. */
static int
want(const struct amr_member *m, int root, const char *path, int create)
{
	int fd = create ? amr_dir(root, path) : am_open_beneath(root, path, O_RDONLY | O_DIRECTORY, 0);

	if (fd >= 0) {
		close(fd);
		return 0;
	}
	am_warn("%s/%s", am_quotes(m->root), path);
	return -1;
}

int
amr_provision(const struct amr_conf *c, size_t member, int create)
{
	static const char *const leaves[] = { "notices", "messages" };
	const struct amr_member *m = &c->members[member];
	int discovered = c->instances_dir != NULL, rc = 0, root;
	char path[64];

	create = create && !discovered;
	if (create && m->namespaced && mkdir(m->root, 0777) != 0 && errno != EEXIST) {
		am_warn("%s", am_quotes(m->root));
		return -1;
	}
	if ((root = amr_root(m)) < 0) {
		am_warn("%s", am_quotes(m->root));
		return -1;
	}
	/* In handoff mode the two lanes are the agent's side's to make. */
	rc |= want(m, root, amr_lane(m, 'i'), create && m->namespaced);
	rc |= want(m, root, amr_lane(m, 'o'), create && m->namespaced);
	for (size_t i = 0; i < 2; i++) {
		snprintf(path, sizeof path, "%s/%s", amr_lane(m, 'i'), leaves[i]);
		rc |= want(m, root, path, create);
		snprintf(path, sizeof path, "peer/%s", leaves[i]);
		if (amr_conf_has_peer(c, member))
			rc |= want(m, root, path, create);
		snprintf(path, sizeof path, "%s/%s", amr_lane(m, 'o'), i == 0 ? "results" : "processed");
		if (discovered || create)
			rc |= want(m, root, path, create);
	}
	close(root);
	if (rc == 0 && create && c->intake_dir != NULL) {
		if ((root = open(c->intake_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) < 0 || am_mkdir_beneath(root, m->name) != 0) {
			am_warn("%s/%s", am_quotes(c->intake_dir), m->name);
			rc = -1;
		}
		if (root >= 0)
			close(root);
	}
	return rc;
}

static jv
below(const struct amr_member *m, const char *lane, const char *leaf)
{
	return jv_string_fmt("%s/%s%s%s", m->root, lane, leaf[0] != '\0' ? "/" : "", leaf);
}

void
amr_provision_print(FILE *fp, const struct amr_conf *c, size_t member, int json)
{
	const struct amr_member *m = &c->members[member];
	char address[AM_ADDRESS_MAX];
	jv d, peer;

	if (!json) {
		fprintf(fp, "INBOX_NOTICE_DIR=%s/%s/notices\nINBOX_MESSAGE_DIR=%s/%s/messages\nOUTBOX_DIR=%s/%s\nMAILBOX_AGENT_ID=%s\n",
		    m->root, amr_lane(m, 'i'), m->root, amr_lane(m, 'i'), m->root, amr_lane(m, 'o'), m->name);
		return;
	}
	d = am_set(jv_object(), "INBOX_NOTICE_DIR", below(m, amr_lane(m, 'i'), "notices"));
	d = am_set(d, "INBOX_MESSAGE_DIR", below(m, amr_lane(m, 'i'), "messages"));
	d = am_set(d, "OUTBOX_DIR", below(m, amr_lane(m, 'o'), ""));
	d = am_set_str(d, "MAILBOX_AGENT_ID", m->name);
	d = am_set_str(d, "address", amr_conf_address_of(c, m->name, address));
	d = am_set_str(d, "router_address", c->domain == NULL ? NULL : amr_conf_address_of(c, NULL, address));
	peer = am_set(jv_object(), "root", below(m, "peer", ""));
	peer = am_set(peer, "notices", below(m, "peer", "notices"));
	peer = am_set(peer, "messages", below(m, "peer", "messages"));
	if (amr_conf_has_peer(c, member)) {
		d = am_set(d, "peer", peer);
	} else {
		jv_free(peer);
		d = am_set(d, "peer", jv_null());
	}
	d = am_set(d, "intake", c->intake_dir == NULL ? jv_null() : jv_string_fmt("%s/%s", c->intake_dir, m->name));
	am_put(fp, d);
}
