"""Runs the command line for ``python -m lookuplab``, without the installed ``lookuplab`` script.
Unlike the script, this also works if the path of the Python environment has spaces.
"""

from lookuplab.run.cli import main

if __name__ == "__main__":
    main()
