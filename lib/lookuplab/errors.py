"""The one exception that a user is meant to read."""


class UserError(Exception):
    """Bad input or a missing resource: what was wrong and what to do, in one line.

    The command line prints the message after ``error:`` and exits with code 2; in a notebook it reads as it is.
    """
