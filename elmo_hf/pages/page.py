# Copyright 2026 The elmo_hf authors. Licensed under the Apache License, Version 2.0.
"""The frame of a self-contained HTML page, light and dark, for a desk and for a phone."""

import html
from pathlib import Path

from elmo_hf.system.writing import write_text

STYLE = """
:root { color-scheme: light dark; --ink: #1c2530; --dim: #66707c; --line: #dde2e8; --good: #2b7a4b;
  --bad: #b3392f; --paper: #ffffff; --card: #f6f8fa; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ed; --dim: #9aa4af; --line: #333c47;
  --good: #6fce97; --bad: #ff8d80; --paper: #14181d; --card: #1c2229; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  max-width: 62rem; margin: 2.5rem auto; padding: 0 1.2rem; }
h1 { font-size: 1.6rem; margin-bottom: .2rem; } h2 { font-size: 1.15rem; margin: 2.4rem 0 .8rem; }
.dim { color: var(--dim); } .cards { display: flex; flex-wrap: wrap; gap: .8rem; margin: 1.4rem 0; }
.card { background: var(--card); border-radius: .6rem; padding: .8rem 1.1rem; min-width: 8.5rem; }
.card b { display: block; font-size: 1.5rem; } img { max-width: 100%; background: #fff;
  border-radius: .6rem; } table { border-collapse: collapse; width: 100%; font-size: .93rem; }
th, td { text-align: left; padding: .35rem .7rem .35rem 0; border-bottom: 1px solid var(--line); }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; } mark { background: none;
  color: var(--bad); font-weight: 700; } .good { color: var(--good); } .bad { color: var(--bad); }
.wide { overflow-x: auto; } .planes { display: flex; gap: 1rem; }
.plane { margin: 0; } .plane svg { background: var(--card); border-radius: .6rem; display: block; }
.plane small { color: var(--dim); }
/* On a phone, pictures keep a size at which they can be read, and scroll sideways. */
@media (max-width: 40rem) { .wide img { max-width: none; height: 19rem; }
  .cards { display: grid; grid-template-columns: 1fr 1fr; } .card { min-width: 0; } }
"""


def section(title: str, body: str) -> str:
    """A part of a page: `title` is text, which is escaped; `body` is HTML."""
    return f"<h2>{html.escape(title)}</h2>{body}"


def write_page(path: Path, title: str, parts: list[str]) -> None:
    """Writes a page of parts in HTML; `title` is text, which is escaped."""
    page = (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{html.escape(title)}</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style><body>{''.join(parts)}</body></html>\n"
    )
    write_text(path, page)
