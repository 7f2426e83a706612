"""Tests of publications, trends, site, notebooks and labs."""
