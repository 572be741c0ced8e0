/*
 * amap-render-fleet - print a fleet policy for a new home on this host
 *
 * The template with its domain replaced by one derived from the host's name
 * (spec deployment, section 2); every other key and the order stay.
 */
#include <ctype.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag.h"
#include "file.h"
#include "json.h"
#include "names.h"

static const char usage[] =
    "usage: amap-render-fleet --host NAME [--base DOMAIN] [TEMPLATE]\n"
    "\n"
    "Prints the policy TEMPLATE (or standard input) with the fleet_domain openshell.NAME.DOMAIN,\n"
    "NAME made fit to be a label of it.\n"
    "\n"
    "  --host NAME    the host's name; only what precedes its first dot counts\n"
    "  --base DOMAIN  the end of the domain (internal)\n";

/* The host's label: lower case, other characters to one "-", at most 63; "" when nothing is left. */
static void
make_label(const char *host, char label[64])
{
	size_t n = 0;

	for (; *host != '\0' && *host != '.' && n < 63; host++) {
		int c = tolower((unsigned char)*host);

		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			label[n++] = (char)c;
		else if (n == 0 || label[n - 1] != '-')
			label[n++] = '-';
	}
	while (n > 0 && label[n - 1] == '-')
		n--;
	label[n] = '\0';
	if (label[0] == '-')
		memmove(label, label + 1, n);
}

/* ---- the document, token by token, so that no number changes its spelling ---- */

#define SPACE " \t\r\n"

/* The length of a string with its quotes, in a text that was found to be JSON. */
static size_t
string_length(const char *p)
{
	size_t n = 1;

	while (p[n] != '"')
		n += p[n] == '\\' ? 2 : 1;
	return n + 1;
}

static size_t
value_length(const char *p)
{
	size_t n = 0;
	int depth = 0;

	do {
		if (p[n] == '"') {
			n += string_length(p + n);
		} else if (strchr("{[}]", p[n]) != NULL) {
			depth += p[n] == '{' || p[n] == '[' ? 1 : -1;
			n++;
		} else if (depth == 0) {
			n += strcspn(p, SPACE ",]}");
		} else {
			n++;
		}
	} while (depth > 0);
	return n;
}

static void
new_line(struct am_buf *out, int depth)
{
	am_buf_byte(out, '\n');
	for (int i = 0; i < depth; i++)
		am_buf_strings(out, "  ");
}

/* Adds the string at p as the document style spells it; 1 when it is this one. */
static int
add_string(struct am_buf *out, const char *p, size_t n, const char *name)
{
	char *token = strndup(p, n);
	jv v;

	if (token == NULL)
		abort();
	v = am_json_parse(token, n);
	free(token);
	am_json_string(out, jv_string_value(v), (size_t)jv_string_length_bytes(jv_copy(v)), AM_DOCUMENT);
	return jv_equal(v, jv_string(name));
}

/* An object in the document style, the value of its member fleet_domain another one; last when it has none. */
static void
rewrite(struct am_buf *out, const char *p, const char *domain)
{
	int depth = 0, replaced = 0;

	for (p += strspn(p, SPACE); *p != '\0'; p += strspn(p, SPACE)) {
		const char *next = p + 1 + strspn(p + 1, SPACE);
		size_t n = 1;

		if ((*p == '{' && *next == '}') || (*p == '[' && *next == ']')) {
			am_buf_add(out, *p == '{' ? "{}" : "[]", 2);
			n = (size_t)(next - p) + 1;
		} else if (*p == '{' || *p == '[') {
			am_buf_byte(out, *p);
			new_line(out, ++depth);
		} else if (*p == '}' || *p == ']') {
			new_line(out, --depth);
			am_buf_byte(out, *p);
		} else if (*p == ',') {
			am_buf_byte(out, ',');
			new_line(out, depth);
		} else if (*p == ':') {
			am_buf_strings(out, ": ");
		} else if (*p == '"') {
			n = string_length(p);
			next = p + n + strspn(p + n, SPACE);
			if (add_string(out, p, n, "fleet_domain") && depth == 1 && *next == ':') {
				next += 1 + strspn(next + 1, SPACE);
				am_buf_strings(out, ": \"", domain, "\"");
				n = (size_t)(next - p) + value_length(next);
				replaced = 1;
			}
		} else {
			n = value_length(p);
			am_buf_add(out, p, n);
		}
		p += n;
	}
	if (!replaced) {
		out->n -= out->n == 2 ? 1 : 2;		/* "{}" or "\n}" */
		am_buf_strings(out, out->n == 1 ? "\n  " : ",\n  ", "\"fleet_domain\": \"", domain, "\"\n}");
	}
	am_buf_byte(out, '\n');
}

/* The bytes of the template, which are a JSON object. */
static char *
read_template(const char *path)
{
	int use_stdin = path == NULL || strcmp(path, "-") == 0, fd = STDIN_FILENO;
	const char *name = use_stdin ? "<stdin>" : path;
	size_t len;
	char *text;
	jv v;

	if (!use_stdin && (fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
		am_die("%s", am_quotes(name));
	if ((text = am_read_fd(fd, AM_JSON_MAX, &len)) == NULL)
		am_die("%s", am_quotes(name));
	if (!use_stdin)
		close(fd);
	v = am_json_parse(text, len);
	if (!jv_is_valid(v))
		am_diex("%s: %s", am_quotes(name), am_json_why(v));
	if (jv_get_kind(v) != JV_KIND_OBJECT)
		am_diex("%s: not a JSON object", am_quotes(name));
	jv_free(v);
	return text;
}

int
main(int argc, char *argv[])
{
	static const struct option options[] = {
		{ "base", required_argument, NULL, 'b' },
		{ "host", required_argument, NULL, 'H' },
		AM_STD_OPTIONS,
		{ NULL, 0, NULL, 0 }
	};
	const char *host = NULL, *base = "internal", *problem;
	char label[64], *domain, *text;
	struct am_buf out = { 0 };
	int c;

	am_prog = "amap-render-fleet";
	while ((c = getopt_long(argc, argv, "+", options, NULL)) != -1) {
		switch (c) {
		case 'b': base = optarg; break;
		case 'H': host = optarg; break;
		default: am_std_option(c, usage);
		}
	}
	if (host == NULL || argc - optind > 1)
		am_usage(usage);
	if ((problem = am_domain_problem(base)) != NULL) {
		am_warnx("--base \"%s\": %s", am_quotes(base), problem);
		return AM_PROBLEM;
	}
	text = read_template(argv[optind]);
	make_label(host, label);
	if (asprintf(&domain, "openshell%s%s.%s", label[0] == '\0' ? "" : ".", label, base) < 0)
		abort();
	rewrite(&out, text, domain);
	fwrite(out.s, 1, out.n, stdout);
	free(text);
	free(domain);
	free(out.s);
	return am_finish(AM_OK);
}
