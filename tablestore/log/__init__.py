"""The change log of a table: the ordered changes of each bucket, in the file store itself or in a log system such as Kafka.

    port       what the rest of the engine asks (ChangeLog); opening chooses filestorelog or publishedlog for a table
    logstore   what a log system must be able to do (LogStore), for connectors
    publish/   snapshots -> log        follow/   log -> reader        early/   rows that run ahead of their snapshot
    json/      rows <-> messages

It is derived from the table's snapshots, and can be made again from them.
"""
