"""Parses SQL text into the values of ``statements``. Pure: no engine, no catalog."""
