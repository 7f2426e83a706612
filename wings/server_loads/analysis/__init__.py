"""Loads on a server: throughput, response times and failures."""
