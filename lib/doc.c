#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "diag.h"
#include "doc.h"
#include "docrules.h"
#include "json.h"

/* ---- predicates ---- */

static int
alnum(char c)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static int
one_of(char c, const char *set)
{
	return alnum(c) || (c != '\0' && strchr(set, c) != NULL);
}

static int
all_of(const char *s, size_t len, const char *set)
{
	while (len > 0 && one_of(*s, set)) {
		s++;
		len--;
	}
	return len == 0;
}

int
am_is_id(const char *s, size_t len)
{
	return len > 0 && one_of(s[0], "_") && all_of(s, len, "_.-");
}

int
am_is_addr(const char *s, size_t len)
{
	const char *at = len > 0 ? memchr(s, '@', len) : NULL;
	size_t local = at == NULL ? 0 : (size_t)(at - s);

	return local > 0 && local + 1 < len && all_of(s, local, "!#$%&'*+/=?^_`{|}~.-") &&
	    all_of(at + 1, len - local - 1, ".-");
}

int
am_is_noctl(const char *s, size_t len)
{
	while (len > 0 && (unsigned char)*s >= 0x20 && *s != 0x7f) {
		s++;
		len--;
	}
	return len == 0;
}

int
am_is_sha256(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (!(s[i] >= '0' && s[i] <= '9') && !(s[i] >= 'a' && s[i] <= 'f'))
			return 0;
	return len == 64;
}

int
am_is_cref(const char *s, size_t len)
{
	static const char tail[] = ".attachments/";
	const size_t n = sizeof tail - 1;
	const char *slash = len > 0 ? memchr(s, '/', len) : NULL;
	size_t head = slash == NULL ? 0 : (size_t)(slash - s) + 1, digits = len - head, i;

	if (head <= n || memcmp(s + head - n, tail, n) != 0 || !all_of(s, head - 1, "_.-"))
		return 0;
	for (i = head; i < len; i++)
		if (s[i] < '0' || s[i] > '9')
			return 0;
	return digits == 1 || (digits > 1 && s[head] != '0');
}

int
am_is_size(jv v)
{
	double n;

	if (jv_get_kind(v) != JV_KIND_NUMBER)
		return 0;
	n = jv_number_value(v);
	return n >= 0 && n < 1e15 && n == (double)(long long)n;
}

/* ---- the rules, applied ---- */

static jv check(jv problems, const char *path, jv v, const struct am_rule *r);

static const char *
what(const struct am_rule *r)
{
	if (r->test == am_is_id)
		return "no id: letters, digits, \"_\", \".\" and \"-\", not beginning with \".\" or \"-\"";
	if (r->test == am_is_addr)
		return "no bare address LOCAL@DOMAIN";
	if (r->test == am_is_noctl)
		return "holds a control character";
	if (r->test == am_is_sha256)
		return "not 64 lower-case hexadecimal digits";
	return "not NOTICE.attachments/INDEX";
}

static int
is_word(const char *s, size_t len, const char *const *words)
{
	for (; *words != NULL; words++)
		if (strlen(*words) == len && memcmp(*words, s, len) == 0)
			return 1;
	return 0;
}

static jv
check_string(jv problems, const char *path, jv v, const struct am_rule *r)
{
	const char *s = jv_string_value(v);
	size_t len = (size_t)jv_string_length_bytes(jv_copy(v));

	if (len == 0 && r->is & NOT_EMPTY)
		return am_doc_problem(problems, path, "empty");
	if (r->test != NULL && !r->test(s, len))
		return am_doc_problem(problems, path, what(r));
	return problems;
}

static jv
check_words(jv problems, const char *path, jv v, const struct am_rule *r)
{
	char list[256] = "not ";
	size_t n = strlen(list);

	if (jv_get_kind(v) == JV_KIND_STRING &&
	    is_word(jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)), r->words))
		return problems;
	for (const char *const *w = r->words; *w != NULL && n < sizeof list; w++)
		n += (size_t)snprintf(list + n, sizeof list - n, "%s\"%s\"", w == r->words ? "" : " or ", *w);
	return am_doc_problem(problems, path, list);
}

static jv
check_object(jv problems, const char *path, jv v, const struct am_rule *r)
{
	const struct am_rule_member *m;
	const char *names[16];
	char at[512];
	size_t n = 0;

	for (m = r->members; m != NULL && m->name != NULL; m++) {
		jv child = jv_object_get(jv_copy(v), jv_string(m->name));

		names[n++] = m->name;
		snprintf(at, sizeof at, "%s.%s", path, m->name);
		if (jv_is_valid(child))
			problems = check(problems, at, child, &m->rule);
		else if (m->required)
			problems = am_doc_problem(problems, at, "missing");
		jv_free(child);
	}
	names[n] = NULL;
	if (r->is & CLOSED && am_unknown_key(v, names) != NULL) {
		snprintf(at, sizeof at, "%s.%.300s", path, am_quotes(am_unknown_key(v, names)));
		problems = am_doc_problem(problems, at, "a member that this class does not know");
	}
	return r->also != NULL ? r->also(problems, path, v) : problems;
}

static jv
check_array(jv problems, const char *path, jv v, const struct am_rule *r)
{
	int n = jv_array_length(jv_copy(v));
	char at[512];

	if (n == 0 && r->is & NOT_EMPTY)
		return am_doc_problem(problems, path, "empty");
	for (int i = 0; i < n; i++) {
		jv item = jv_array_get(jv_copy(v), i);

		snprintf(at, sizeof at, "%s[%d]", path, i);
		problems = check(problems, at, item, r->items);
		jv_free(item);
	}
	return problems;
}

static jv
check(jv problems, const char *path, jv v, const struct am_rule *r)
{
	if (r->words != NULL)
		return check_words(problems, path, v, r);
	switch (jv_get_kind(v)) {
	case JV_KIND_NULL:
		if (r->is & OR_NULL)
			return problems;
		break;
	case JV_KIND_STRING:
		if (r->is & STRING)
			return check_string(problems, path, v, r);
		break;
	case JV_KIND_OBJECT:
		if (r->is & OBJECT)
			return check_object(problems, path, v, r);
		break;
	case JV_KIND_ARRAY:
		if (r->is & ARRAY)
			return check_array(problems, path, v, r);
		break;
	case JV_KIND_TRUE:
	case JV_KIND_FALSE:
		if (r->is & BOOLEAN)
			return problems;
		break;
	case JV_KIND_NUMBER:
		if (r->is & SIZE && !am_is_size(v))
			return am_doc_problem(problems, path, "not a whole number from 0 to 10^15 - 1");
		if (r->is & NUMBER && jv_number_value(v) < 0)
			return am_doc_problem(problems, path, "less than 0");
		if (r->is & (SIZE | NUMBER))
			return problems;
		break;
	default:
		break;
	}
	return am_doc_problem(problems, path,
	    r->is & OBJECT ? "not an object" : r->is & ARRAY ? "not an array" :
	    r->is & BOOLEAN ? "not true or false" : r->is & (SIZE | NUMBER) ? "not a number" :
	    r->is & OR_NULL ? "neither a string nor null" : "not a string");
}

/* ---- the classes ---- */

static int
index_of(const char *doc_class)
{
	for (int i = 0; am_doc_classes[i].name != NULL; i++)
		if (strcmp(am_doc_classes[i].name, doc_class) == 0)
			return i;
	abort();	/* a class is ours to name; am_doc_class looks up what others wrote */
}

jv
am_doc_problems(const char *doc_class, jv doc)
{
	return check(jv_array(), "$", doc, &am_doc_rules[index_of(doc_class)]);
}

int
am_doc_version_refused(const char *doc_class, jv doc)
{
	const struct am_rule_member *version = am_doc_rules[index_of(doc_class)].members;
	const char *s;

	if (jv_get_kind(doc) != JV_KIND_OBJECT)
		return 0;
	while (strcmp(version->name, "contract_version") != 0)		/* every class has it */
		version++;
	if (!am_has(doc, "contract_version"))
		return version->required;
	if ((s = am_str(doc, "contract_version")) == NULL || *s == '\0')
		return 1;
	if (s[strspn(s, "0123456789")] != '\0')
		return 1;
	s += strspn(s, "0");
	return strcmp(s, "2") != 0;
}

const char *
am_doc_class(const char *name)
{
	for (const struct am_doc_class *c = am_doc_classes; c->name != NULL; c++)
		if (strcmp(c->name, name) == 0 || strcmp(c->prefix, name) == 0)
			return c->name;
	return NULL;
}

const char *
am_doc_class_of(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;

	for (const struct am_doc_class *c = am_doc_classes; c->name != NULL; c++) {
		size_t n = strlen(c->prefix);

		if (strncmp(name, c->prefix, n) == 0 && name[n] == '-')
			return c->name;
	}
	return NULL;
}
