"""Analysis: from a results folder to tables, figures, reports and verdicts."""
