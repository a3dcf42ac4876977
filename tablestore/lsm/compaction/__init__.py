"""Which files to compact: values in, tasks out."""
