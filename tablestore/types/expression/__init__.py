"""Scalar expressions over the columns of a row, such as ``price * 2`` and ``upper(item)``."""
