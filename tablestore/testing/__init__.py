"""Help for tests, ours and those of other stores; the product imports none of it. The extra ``testing`` brings what it needs.

    contracts/      what stores, logs and locks promise, as tests to subclass
    files           a store that fails where a test says
    deterministic   a clock and ids that a test owns
    scheduler       actors that take turns, drawn from a seed
    lab             a small table to experiment on
    auditor         what a table holds, worked out the slow and simple way; holdings: what leads to which file
    memorylog       a log in this process
    kafka/          a real broker on this machine
    night/          tries to break a store for hours: ``python -m tablestore.testing.night``

What only our own tests share lies in ``tests/support``.
"""
