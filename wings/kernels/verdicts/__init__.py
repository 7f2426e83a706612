"""Kernels attributed: what each of several virtual kernels makes of every cell, beside the first.

table      the model, and the way to it: folders in, verdicts out
text       the table for a terminal, and for a mail
suite      JUnit XML and KTAP
document   the JSON document and its fields
figure     bars for a document, from such documents
"""
