"""Markdown and code as HTML, the only place where text becomes markup.

What comes out is safe to insert into a page whatever went in: raw HTML is text, every
tag, attribute and class is on a list, nothing loads from anywhere. Code is coloured by
classes (`static/css/syntax.css` has the rules), because the page allows no inline style.
"""
