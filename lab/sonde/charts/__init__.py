# SPDX-License-Identifier: Apache-2.0
"""Draws numbers as SVG and lays out HTML pages, without any script.

Pages contain no script and load no other file: charts are drawn as SVG before a page is written. That was chosen over
an embedded chart library (Vega-Lite through altair: 0.9 MB of script in every file, 34 MB to install, and pre-rendered
SVG whose colors, letters and widths are fixed) because a page must

* look the same with scripts forbidden, in a mail program, printed, and when today's chart library is forgotten;
* follow the width of the reader's screen and the reader's light or dark scheme, which pre-rendered charts cannot;
* open at once for 5,000 tasks, and travel by mail: a run takes a few hundred kB;
* carry names found on the system under test, which may be hostile, without any way to execute them. A content security
  policy in the file forbids scripts and every kind of request besides.

Pointing at a chart shows values (style sheet only), and the numbers behind every chart stand in a table below it.

Color has one meaning: blue is a number about storage, gray is a number about something else (page cache, memory, a
synthetic backend), vermilion is wrong or failed. Each is also said in words.

`axes` and `plot` frame a chart, `dates`, `heat`, `matrix`, `*_bars` and `*_chart` draw one kind each, `study` is a page
about many runs, `pages` fills a template (parts and style are in `templates/`), `writing` replaces a file in one step.
"""
