"""``python -m lookuplab``: the command line without a console script; it also works in a path with
spaces.
"""

from lookuplab.run.cli import main

if __name__ == "__main__":
    main()
