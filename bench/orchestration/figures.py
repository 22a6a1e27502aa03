# SPDX-License-Identifier: Apache-2.0
"""Numbers of repetitions, by what was measured and at which size, as a table with their growth and their ratios."""
import statistics


def short(value):
    """Three digits that count."""
    if value == 0:
        return "0"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


class Figures:
    def __init__(self):
        self.values, self.ratios, self.remarks = {}, [], []

    def add(self, part, what, unit, size, value):
        """`size`: of the work, as a number or a name, or 0 where there is but one."""
        self.values.setdefault((part, what, unit), {}).setdefault(size, []).append(float(value))

    def remark(self, text):
        if text not in self.remarks:
            self.remarks.append(text)

    def of(self, part, what, size):
        """The repetitions, or none where it was not measured."""
        return next((sizes.get(size, []) for (of, case, _), sizes in self.values.items() if (of, case) == (part, what)), [])

    def compare(self, part, name, one, other, goal=""):
        """Notes the ratio of two numbers at each size that has both: of their repetitions side by side, which ran in turns."""
        for size in self.sizes(part):
            pairs = list(zip(self.of(part, one, size), self.of(part, other, size)))
            if pairs:
                self.ratios.append((part, name, size, [a / b for a, b in pairs if b], goal))

    def sizes(self, part):
        """Numbers in ascending order; names as they came."""
        found = dict.fromkeys(size for (of, _, _), sizes in self.values.items() if of == part for size in sizes)
        return list(found) if any(isinstance(size, str) for size in found) else sorted(found)

    def parts(self, of):
        """The figures of a part, and of parts whose names begin with its name."""
        return list(dict.fromkeys(part for part, _, _ in self.values if part == of or part.startswith(f"{of}, ")))

    def table(self, part):
        sizes = self.sizes(part)
        grown = len(sizes) > 1 and not any(isinstance(size, str) for size in sizes)
        lines = [[part, "unit", *map(named, sizes), *(["growth"] if grown else []), "n"]]
        for (of, what, unit), at in self.values.items():
            if of != part:
                continue
            cells = [spread(at[size]) if size in at else "–" for size in sizes]
            medians = [statistics.median(at[size]) for size in sizes if size in at]
            growth = grown and " ".join(f"{median / medians[0]:.3g}×" for median in medians) if len(medians) > 1 and medians[0] else ""
            lines.append([what, unit, *cells, *([growth] if grown else []), str(max(map(len, at.values())))])
        text = in_columns(lines)
        ratios = [[name, named(size), spread(all_of_them), goal] for of, name, size, all_of_them, goal in self.ratios
                  if of == part and all_of_them]
        if ratios:
            text += "\n" + in_columns([["ratio", "at", "median (lowest to highest)", "goal"], *ratios])
        return text

    def record(self):
        return {
            "figures": [{"part": part, "what": what, "unit": unit, "size": size, "values": values, **summary(values)}
                        for (part, what, unit), sizes in self.values.items() for size, values in sizes.items()],
            "ratios": [{"part": part, "ratio": name, "size": size, "goal": goal, **summary(values)}
                       for part, name, size, values, goal in self.ratios if values],
            "remarks": self.remarks}


def named(size):
    """A column's head."""
    return size if isinstance(size, str) else f"{size:,}" if size else ""


def summary(values):
    return {"n": len(values), "median": statistics.median(values), "lowest": min(values), "highest": max(values)}


def spread(values):
    middle = short(statistics.median(values))
    return middle if len(values) == 1 else f"{middle} ({short(min(values))} to {short(max(values))})"


def in_columns(lines):
    """The first column to the left, the others to the right."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "".join("  ".join([line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))]).rstrip() + "\n"
                   for line in lines)
