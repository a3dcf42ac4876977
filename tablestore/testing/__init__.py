"""Help for tests, ours and the connectors': stores that fail, clocks that stand still. The product imports none.

    contracts/      what stores, logs and locks promise, as tests to subclass
    files           a store that fails where a test says
    deterministic   a clock and ids that a test owns
    kafka/          a real broker on this machine
"""
