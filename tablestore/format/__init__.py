"""On-disk objects of a table: one module each, with its value, its encoder, its decoder and its version.

Nothing here opens a file: bytes come in and go out.
"""
