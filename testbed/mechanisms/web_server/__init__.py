"""Web server: which program served a page, and what shows it."""
