"""Plans and runs writes: INSERTs, sets of them, and CREATE TABLE … AS; as statements and as objects of Python's."""
