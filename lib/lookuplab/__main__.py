"""Runs the command line for ``python -m lookuplab``, without the installed ``lookuplab`` script.
The script does not work if the path of the Python environment has spaces; this module does.
"""

from lookuplab.run.cli import main

if __name__ == "__main__":
    main()
