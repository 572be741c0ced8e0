#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "health/health.h"

struct group {
	char *tag, *slugs, *reason;
	int n;
};

/* The lines of one condensed warning: "TAG  slug: reason", the same tag and reason joined. */
static void
condense(struct group **groups, size_t *count, const char *line)
{
	const char *gap = strstr(line, "  "), *colon = gap == NULL ? NULL : strstr(gap, ": ");
	struct group *g;

	for (size_t i = 0; i < *count && colon != NULL; i++) {
		g = &(*groups)[i];
		if (g->slugs != NULL && strlen(g->tag) == (size_t)(gap - line) && strncmp(g->tag, line, strlen(g->tag)) == 0 &&
		    strcmp(g->reason, colon + 2) == 0) {
			char *joined;

			if (asprintf(&joined, "%s, %.*s", g->slugs, (int)(colon - gap - 2), gap + 2) < 0)
				abort();
			free(g->slugs);
			g->slugs = joined;
			g->n++;
			return;
		}
	}
	if ((*groups = realloc(*groups, (*count + 1) * sizeof **groups)) == NULL)
		abort();
	g = &(*groups)[(*count)++];
	memset(g, 0, sizeof *g);
	g->n = 1;
	g->tag = strndup(line, colon == NULL ? strlen(line) : (size_t)(gap - line));
	if (colon != NULL) {
		g->slugs = strndup(gap + 2, (size_t)(colon - gap - 2));
		g->reason = strdup(colon + 2);
	}
}

static void
warn_groups(struct am_checks *out, struct group *groups, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct group *g = &groups[i];
		char *text;

		if ((g->slugs == NULL ? asprintf(&text, "%s", g->tag)
		    : g->n == 1 ? asprintf(&text, "%s  %s: %s", g->tag, g->slugs, g->reason)
		    : asprintf(&text, "%s \xc3\x97%d (%s): %s", g->tag, g->n, g->slugs, g->reason)) < 0)
			abort();
		am_check_warning(out, AM_HEALTH, text);
		free(text);
		free(g->tag);
		free(g->slugs);
		free(g->reason);
	}
	free(groups);
}

void
am_health_discovery(struct am_checks *out, jv answers)
{
	struct am_check c = am_health_check("H6", "discovery has nothing to complain of", "the router's plain status",
	    "VERDICT UNAVAILABLE: selected.json cannot be read; NO DIRECTORY: a member without its lanes, provision it;"
	    " INERT EDGE: a name in the policy that is no member");
	struct group *groups = NULL;
	size_t count = 0, n;
	struct am_asked a;
	int inside = 0;
	char *text;

	if (!am_asked(answers, "router-report", NULL, &a)) {
		c.remedy = "make the router's status work, then verify again";
		am_check_unknown(out, &c, a.why);
		return;
	}
	c.expected = jv_array();
	c.actual = jv_array();
	if (asprintf(&text, "%s\n%s", a.out, a.err == NULL ? "" : a.err) < 0)
		abort();
	for (const char *p = text; *p != '\0'; p += n + (p[n] == '\n')) {
		size_t blank = strspn(p, " \t\r");
		char *line;

		n = strcspn(p, "\n");
		if (blank >= n)
			continue;
		if (blank == 0) {
			inside = n >= 10 && strncmp(p, "discovery:", 10) == 0 && p[10 + strspn(p + 10, " \t\r")] == '\n';
			continue;
		}
		if (!inside)
			continue;
		if ((line = strndup(p + blank, n - blank)) == NULL)
			abort();
		if (strncmp(line, "** ", 3) == 0)
			c.actual = jv_array_append(c.actual, jv_string(line));
		else
			condense(&groups, &count, line);
		free(line);
	}
	am_check_equal(out, &c);
	warn_groups(out, groups, count);
	free(text);
}
