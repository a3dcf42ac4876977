"""How fast is tablestore, next to what is possible and to its peers?

    python -m benchmarks [all|write|scan|commit|spark|tpch|…]

Every workload is measured next to its *floor* (pyarrow writing or reading the same bytes, without any table around them)
and to pypaimon, pure and with its native code. All of them run on one core, in turns, in one run; what counts are medians
and their ratios. Every timed run's rows are checked.

    workloads   seeded rows and keys              floors      plain pyarrow
    ours        tables of ours                    peers       pypaimon in a process of its own (peer_worker)
    measure     turns, medians, peak memory       report      bars, JSON, Markdown
    bench_…     the questions
"""
