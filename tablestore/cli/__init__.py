"""The command line: ``tablestore <noun> <verb>``, a program on the public names."""
