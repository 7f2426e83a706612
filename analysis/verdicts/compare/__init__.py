"""Comparison of two results folders: same, different or inconclusive; never pooled.

comparison    the model
folders       the engine: read, refuse what is unequal, judge each cell
environments  differences between two environments, and whether they are under test
kind          what a kind of trial has of its own: its verdict, its captures
matching      which cell is which, and what became of its trials
exact         the virtual kernel: to the bit
draws         the virtual kernel in two environments: within the spread of draws or beyond
estimated     the host's kernel: significance and size
clocks        virtual against real time: a tolerance, and what accounts for more
kernels       evidence on two kernels: packets, changes by client, savings
captures      the first packet that differs (testbed.capture.difference)
sentences     sentences, columns, and the text of a terminal
schema        the JSON document and its fields
documents     JSON, JUnit XML, Markdown and HTML
"""
