"""The report of a run: document, charts, waterfalls, verdicts, terminal."""
