/*
 * Whatever stands in a checks stream, every record becomes a check that has
 * all it must have, and every form of the verdict can be printed; an answers
 * stream is told or refused.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "verdict/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const forms[])(FILE *, const struct am_verdict *) = { am_verdict_report, am_verdict_jsonl,
	    am_verdict_tap, am_verdict_junit, am_verdict_nagios, am_verdict_prometheus };
	struct am_verdict v = { .warnings = jv_array() };
	struct am_stream in = { .name = "fuzz" };
	struct am_asked a;
	FILE *fp, *null = fopen("/dev/null", "w");
	jv rec, answers, doc;
	char why[600];

	if (size == 0) {
		jv_free(v.warnings);
		if (null != NULL)
			fclose(null);
		return 0;
	}
	if (null == NULL || (fp = fmemopen((void *)(uintptr_t)data, size, "r")) == NULL)
		abort();
	in.fp = fp;
	while (am_next(&in, &rec) > 0)
		am_verdict_add(&v, rec, "fuzz");
	am_verdict_sort(&v);
	for (size_t i = 0; i < v.count; i++)
		if (v.checks[i].claim == NULL || v.checks[i].section == NULL ||
		    (v.checks[i].outcome != AM_IS_PASS && v.checks[i].remedy == NULL))
			abort();
	for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
		forms[i](null, &v);
	am_verdict_free(&v);
	free(in.buf);

	rewind(fp);
	answers = am_answers_from(jv_object(), fp, "fuzz");
	if (jv_is_valid(answers)) {
		if (!am_asked(answers, "write", "alpha", &a) && a.why[0] == '\0')
			abort();
		if (am_sandbox(answers, "default", "alpha", 1, &doc, why) == AM_PRESENT && jv_get_kind(doc) != JV_KIND_OBJECT)
			abort();
		jv_free(doc);
	}
	jv_free(answers);
	fclose(fp);
	fclose(null);
	return 0;
}
