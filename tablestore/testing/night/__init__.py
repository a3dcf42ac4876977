"""Tries to break a store for hours: ``python -m tablestore.testing.night --hours 8 --seed 1``.

    lifeplan        one short life of a table as a value: who does what, and which calls are struck; it is drawn from a seed
    life            lives it, and checks what came out against plain lists and dicts
    world           the stores that a life is lived on, and what is seen of them
    actor           one process of a life, which is struck, killed and begun again
    acts            what actors do, and what that does to rows
    powercut        a store that forgets what was not synced; localpower: a folder that does
    fulldisk        a store without room; exhaustion: processes with too few open files or too little memory
    killed          processes of this machine that are killed
    soak            one table under commits and services for long: memory, latency, files
    shrinking       the least part of a life that still fails
    scenarios       all of them by name; onenight: one night of them
    counts          what was tried, as JSON; showing: on a screen; document: in a page
    planted         an engine with a bug, and how long it takes until the night finds it

``schedules``, ``keepers`` and ``logplay`` are lives of other kinds; they know their own rules.
"""
