"""What stops a bench."""


class BenchError(Exception):
    """A run that can't start or can't be believed; the message says what to do about it."""
