"""Help for tests, ours and those of other stores; the product imports none of it. The extra ``testing`` brings what it needs.

    contracts/      what stores, logs and locks promise, as tests to subclass
    files           a store that fails where a test says
    deterministic   a clock and ids that a test owns
    kafka/          a real broker on this machine

What only our own tests share lies in ``tests/support``.
"""
