"""Report of a run: document, figures, waterfalls, findings, terminal."""
