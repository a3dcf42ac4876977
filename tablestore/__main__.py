"""``python -m tablestore`` is the command ``tablestore``."""

from tablestore.cli.main import main

if __name__ == "__main__":
    main()
