"""Kinds of trial on the side of analysis: a folder for each, named as the testbed names the kind.

That of a wing's kind is the folder ``analysis`` of the wing.  A folder says what four rooms ask of
its kind, each in a module of the room's name:

records    its metrics, axes and columns, and what a record of it must hold
tables     its rows, and its part of the summary
report     its page, its figures and its sentences
verdicts   how two results of it are compared, and what a baseline keeps

The rooms below read these by the kind's name and know none themselves.
"""
