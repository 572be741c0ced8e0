#include "router/router.h"

const char *const amr_counter_names[AM_COUNTERS] = {
	"first_sight", "outbound_seen", "outbound_skipped_bad_name", "outbound_resumed", "outbound_req_id_reused",
	"outbound_errored", "drained", "accepted", "rejected", "queued_for_human", "quarantined",
	"found_by_event", "found_by_scan", "held_released", "held_denied",
	"peer_outcomes_seen", "peer_delivered", "peer_held", "peer_denied", "peer_refused", "peer_ambiguous_target",
	"peer_inject_failed", "peer_outcome_discarded", "peer_outcome_errored", "peer_dsn_sent", "peer_dsn_failed",
	"instance_errored"
};

void
amr_count(struct amr_inst *in, enum amr_counter c)
{
	in->last[c]++;
	in->total[c]++;
}

struct amr_version
amr_version_of(const struct stat *st)
{
	return (struct amr_version){ st->st_dev, st->st_ino, st->st_size, st->st_mtim, st->st_ctim };
}

static int
same_time(struct timespec a, struct timespec b)
{
	return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
}

int
amr_same_version(const struct amr_version *a, const struct amr_version *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size && same_time(a->mtime, b->mtime) &&
	    same_time(a->ctime, b->ctime);
}
