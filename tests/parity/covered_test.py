#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails when a part or a choice of models/ has no case of ground truth, or a case no test.

What there is to cover is read from the headers: classes `FooImpl` (parts), enumerators of `enum class`, fields of
`struct FooChoice` and `struct FooOptions`.
"""
import glob
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
sys.path.insert(0, HERE)
from environment import demand, import_timm

# What no case can prove, and why, beside what the families say.
EXCEPTIONS = {
    "FanOut::kAll": "says how weights start, which ground truth replaces",
    "FanOut::kOfGroup": "says how weights start, which ground truth replaces",
    "KeyMethod::kLinear": "no manifold key is built",
    "KeyChoice.gamma": "says how weights start, which ground truth replaces",
    "KeyChoice.gamma_cb": "says how weights start, which ground truth replaces",
    "DropPathRule::kLinear": "acts in training, and ground truth is of evaluation",
    "DropPathRule::kConstant": "acts in training, and ground truth is of evaluation",
    "DropPathOptions.rate": "acts in training, and ground truth is of evaluation",
    "DropPathOptions.rule": "acts in training, and ground truth is of evaluation",
}
# Fields of the options of many structs.
FIELD_EXCEPTIONS = {
    r"\w+Options\.(drop_path|drop_rate)": "acts in training, and ground truth is of evaluation: drop_path_test.cc",
    r"\w+Options\.checkpoint_blocks": "changes no number: recompute_test.cc",
    r"\w+Options\.(eta|zero_init_last)": "says how weights start, which ground truth replaces",
    r"WeightsOptions\.\w+": "says what a loaded state may lack: weights_test.cc",
}


def headers():
    for file in sorted(glob.glob(os.path.join(ROOT, "models", "**", "*.h"), recursive=True)):
        if os.sep + "counting" + os.sep not in file:  # counts what runs, and computes nothing of a model
            with open(file, encoding="utf-8") as text:
                yield re.sub(r"//[^\n]*", "", text.read())


def to_cover():
    found = set()
    for text in headers():
        found.update(re.findall(r"\bclass (\w+)Impl\b[^;{]*\{", text))
        for name, body in re.findall(r"\benum class (\w+)[^{]*\{([^}]*)\}", text):
            found.update(f"{name}::{enumerator}" for enumerator in re.findall(r"\bk[A-Z]\w*", body))
        for name, body in re.findall(r"\bstruct (\w+(?:Choice|Options)) \{\n(.*?)\n\};", text, re.DOTALL):
            found.update(f"{name}.{field}" for field in fields_of(body))
    return found


def fields_of(body):
    """Of "std::int64_t width = 0, stride = 1; std::vector<int> sizes{1, 2};": width, stride, sizes."""
    body = re.sub(r"[\w:<>= ]+\([^)]*\) const (\{[^}]*\}|= default;)|using [^;]*;", "", body)  # functions and types
    while "{" in body:
        body = re.sub(r"\{[^{}]*\}", "", body)
    return re.findall(r"(\w+)\s*(?:=[^,;]*)?[,;]", body)


def exceptions(named):
    import families
    fields = {name for name in named for pattern in FIELD_EXCEPTIONS if re.fullmatch(pattern, name)}
    return EXCEPTIONS.keys() | fields | {name for name, why in families.all_have("EXCEPTIONS")}


def tests():
    """The text of all tests, with what stands for a case's name there."""
    files = glob.glob(os.path.join(ROOT, "tests", "models", "*.cc"))
    text = "".join(open(file, encoding="utf-8").read() for file in files)
    return set(re.findall(r'"([\w-]+)"', text))


def main():
    demand()
    import_timm()
    from case import large_cases, small_cases
    small = small_cases()
    named, covered = to_cover(), {name for case in small for name in case.covers}
    words, excepted = tests(), exceptions(named)
    complaints = [f"{name} is in models/, but in no small case" for name in sorted(named - covered - excepted)]
    complaints += [f"{name} is covered by a case, but not in models/" for name in sorted(covered - named)]
    complaints += [f"{name} is an exception, but not in models/" for name in sorted(excepted - named)]
    complaints += [f"{pattern} excepts nothing" for pattern in FIELD_EXCEPTIONS
                   if not any(re.fullmatch(pattern, name) for name in named)]
    complaints += [f"{name} is an exception, but covered by a case" for name in sorted(excepted & covered)]
    complaints += [f"{case.name} is compared by no test in tests/models" for case in [*small, *large_cases()]
                   if not {case.name, case.name.removeprefix("ref_msf_")} & words]
    print("\n".join(complaints) or f"{len(named)} parts and choices are covered by {len(small)} cases or excepted")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
