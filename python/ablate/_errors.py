# SPDX-License-Identifier: Apache-2.0
"""The one exception of this package, and how names that are nearly right are told."""
import difflib


class Error(Exception):
    """What was wrong, with the value and what was expected, in one line."""


def nearest(name, known):
    """"; did you mean 'lr'?", or the names that there are."""
    known = [str(each) for each in known]
    close = difflib.get_close_matches(str(name), known, n=1)
    if close:
        return f"; did you mean '{close[0]}'?"
    return f"; expected one of {', '.join(sorted(known))}" if known else ""
