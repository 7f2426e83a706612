"""Formats that verdicts are written in, whatever was judged: lines of text, Markdown, suites."""
