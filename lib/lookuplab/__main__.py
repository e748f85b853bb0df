"""``python -m lookuplab``: the command line without a console script, so that a path with spaces is no matter."""

from lookuplab.cli import main

if __name__ == "__main__":
    main()
