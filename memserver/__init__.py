"""memserver: a reference memory-system server for the Agent Memory Leaderboard."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("memserver")
except PackageNotFoundError:  # imported from a checkout that is not installed
    __version__ = "0+uninstalled"
