"""The change log: records, their bytes, and the protocol of a log system. Needs types and format, not store."""
