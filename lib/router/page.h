/*
 * page - putting what others wrote into a page, as text and never as markup.
 */
#ifndef AM_ROUTER_PAGE_H
#define AM_ROUTER_PAGE_H

#include <jv.h>
#include <stdio.h>

void amr_page_text(FILE *fp, const char *s);

/* A string as it is, anything else as JSON; lines: it may have several. Borrows. */
void amr_page_value(FILE *fp, jv v, int lines);

/* A table's title and first row. */
void amr_page_head(FILE *fp, const char *title, const char *const columns[]);

/* A member of an object as a cell, empty when it is not there; as a term of a list, left out then. Borrow. */
void amr_page_cell(FILE *fp, jv object, const char *key);
void amr_page_term(FILE *fp, const char *label, jv object, const char *key);

#endif
