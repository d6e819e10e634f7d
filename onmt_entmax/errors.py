"""The one kind of error that is the user's to mend."""


class UserError(ValueError):
    """Something a user can put right; the message is one line that says what and where.

    The commands print it without a traceback. Every room derives its own errors from it.
    """
