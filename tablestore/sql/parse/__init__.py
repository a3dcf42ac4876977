"""SQL text in, the values of ``statements`` out. Pure: no engine, no catalog."""
