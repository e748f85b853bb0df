"""``python -m lookuplab``: the command line without the installed ``lookuplab`` script. It also
works if the path of the environment has spaces.
"""

from lookuplab.run.cli import main

if __name__ == "__main__":
    main()
