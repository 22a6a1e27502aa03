# SPDX-License-Identifier: Apache-2.0
"""Two sides that do the same, timed in turns: on a machine whose speed varies, only what ran side by side can be compared."""
import statistics

PAIRS = 7


def heading(what, left="Python", right="C++"):
    print(f"{what:32} {left:>9} {right:>9} {'ratio':>7}   spread of the ratio")


def compare(name, theirs, ours, seconds, unit):
    """Prints the medians of both in `unit`ths of a second and of their ratio (above 1: ours is faster). Returns the latter. Both are called
    with a number of repetitions and return the seconds that these took."""
    once = min(theirs(1) for _ in range(3))
    ours(3)
    repeats = max(1, int(seconds / once))
    pairs = [(theirs(repeats) / repeats, ours(repeats) / repeats) for _ in range(PAIRS)]
    ratios = sorted(t / o for t, o in pairs)
    median = statistics.median(ratios)
    print(f"{name:32} {unit * statistics.median(t for t, _ in pairs):9.2f} {unit * statistics.median(o for _, o in pairs):9.2f} {median:7.2f}   "
          f"{ratios[0]:.2f} to {ratios[-1]:.2f}", flush=True)
    return median


def conclude(kind, medians):
    slower = [name for name, median in medians.items() if median < 1]
    print(f"every {kind} is at least as fast" if not slower else f"slower: {', '.join(slower)}")
