"""Measures tablestore beside other table stores, on the reader's own machine.

systems     who is measured, in which environment, by which settings
process     a system as a process that answers in JSON lines
workers/    what runs in those processes: one module a system
rows        the rows of all suites, and what has to be read of them
record      measurements, and the folder that they are kept in
suites/     one module a suite
running     a run: suites, systems, limits of time, progress
compare, charts, page      two runs beside each other; pictures; the page of the documents
"""
