"""An engine with a bug, one at a time: what finds it, and after how many seconds.

commitbugs      of commits, compactions and expiry
retentionbugs   of clean, expiry, tags and branches
logbugs         of a table over a log
hunting         looks for each of them with the scenarios of a night
"""
