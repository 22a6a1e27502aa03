# SPDX-License-Identifier: Apache-2.0
"""Steps and values as the protocol has them, of what libraries for numbers return."""
import math

from ._errors import Error

HIGHEST_STEP = 2**32 - 1
KEPT_TEXT = 80  # characters of a value in a message


def number(name, value):
    """A metric's value as a float: of a Python number, or of a NumPy, PyTorch or other array of one number.
    Throws: Error naming the metric, for a text, a truth value, None, several numbers, or one beyond a double."""
    plain = value
    if not isinstance(value, (int, float)) and hasattr(value, "item"):
        if getattr(value, "size", None) is not None and not callable(value.size) and value.size != 1:
            raise Error(f"metric '{name}': {value.size} numbers; expected one (its mean?)")
        try:
            plain = value.item()
        except (ValueError, RuntimeError, TypeError) as error:
            raise Error(f"metric '{name}': {_shown(value)} is not one number ({str(error).splitlines()[0]})") from error
    if isinstance(plain, (bool, str, bytes, complex)) or plain is None or not hasattr(plain, "__float__"):
        raise Error(f"metric '{name}': {_shown(plain)} is not a number")
    try:
        return float(plain)
    except OverflowError:
        raise Error(f"metric '{name}': a whole number beyond what a double holds") from None
    except (TypeError, ValueError) as error:
        raise Error(f"metric '{name}': {_shown(plain)} is not one number ({error})") from error


def step_number(step):
    """A step as an int; 3.0 and a NumPy integer are one. Throws: Error."""
    plain = step.item() if hasattr(step, "item") and not isinstance(step, (int, float)) else step
    whole = isinstance(plain, (int, float)) and not isinstance(plain, bool) and math.isfinite(plain) and plain == int(plain)
    if not whole or not 0 <= plain <= HIGHEST_STEP:
        raise Error(f"step: {_shown(step)} is not a whole number from 0 to {HIGHEST_STEP}")
    return int(plain)


def in_json(value):
    """What JSON has no word for is a text."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def metrics(values):
    """Name → float. Throws: Error for a name that is not a text, or a value that is not a number."""
    for name in values:
        if not isinstance(name, str) or not name:
            raise Error(f"metric name: {_shown(name)} is not a text")
        try:
            name.encode()
        except UnicodeEncodeError:
            raise Error(f"metric name: {_shown(name)} is not valid Unicode") from None
    return {name: number(name, value) for name, value in values.items()}


def _shown(value):
    text = repr(value).splitlines()[0] if repr(value) else ""
    text = text if len(text) <= KEPT_TEXT else text[:KEPT_TEXT] + "…"
    return f"{text} ({type(value).__name__})"
