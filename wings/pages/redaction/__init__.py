"""Redaction of secrets in recordings: the rules, and finding and replacing what they name."""
