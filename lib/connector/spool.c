#include <string.h>

#include "connector/spool.h"
#include "doc.h"

int
am_spool_id(jv v)
{
	size_t len;

	if (jv_get_kind(v) != JV_KIND_STRING)
		return 0;
	len = (size_t)jv_string_length_bytes(jv_copy(v));
	return len <= 200 && am_is_id(jv_string_value(v), len) && strstr(jv_string_value(v), "..") == NULL;
}
