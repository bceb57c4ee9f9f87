"""The conformance check that a team runs before it registers: the contract and its traps, against any server over HTTP.

Each file of checks is one group of the report. A check is a small function that raises ``Failed`` with a reason.
"""
