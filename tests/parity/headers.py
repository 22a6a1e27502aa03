# SPDX-License-Identifier: Apache-2.0
"""What the C++ headers of models/ say: parts, values of enumerations, fields of options."""
import glob
import json
import os
import re

MODELS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "models")


def texts():
    for file in sorted(glob.glob(os.path.join(MODELS, "**", "*.h"), recursive=True)):
        # counting/ counts what runs, and computes nothing of a model; dense/ and dino/ have references of their own (tests/dense,
        # tests/segmentation, tests/dino)
        if os.path.relpath(file, MODELS).split(os.sep)[0] not in ("counting", "dense", "dino"):
            with open(file, encoding="utf-8") as text:
                yield re.sub(r"//[^\n]*", "", text.read())


class Headers:
    """
    parts    "Xcit", of `class XcitImpl`
    enums    {"Kernel": {"kDot": "dot", …}}: the values with the names that `name_of` gives them, None where it gives none
    structs  {"AttentionChoice": {"kernel": Field, …}}, of `struct FooChoice` and `struct FooOptions`
    """

    def __init__(self):
        text = "\n".join(texts())
        self.parts = set(re.findall(r"\bclass (\w+)Impl\b[^;{]*\{", text))
        names = dict(re.findall(r'case (\w+::\w+):\s*return "([^"]*)";', text))
        self.enums = {enum: {value: names.get(f"{enum}::{value}") for value in re.findall(r"\bk[A-Z]\w*", body)}
                      for enum, body in re.findall(r"\benum class (\w+)[^{]*\{([^}]*)\}", text)}
        self.structs = {struct: dict(fields_of(body)) for struct, body in
                        re.findall(r"\bstruct (\w+(?:Choice|Options)) \{\n(.*?)\n\};", text, re.DOTALL)}

    def names(self):
        """Parts, values and fields: "Xcit", "Kernel::kDot", "AttentionChoice.kernel"."""
        return (self.parts | {f"{enum}::{value}" for enum, values in self.enums.items() for value in values}
                | {f"{struct}.{field}" for struct, fields in self.structs.items() for field in fields})

    def struct(self, name):
        """The name of a struct by the same in other letters: "swin-v2" + "Options" is SwinV2Options."""
        found = [struct for struct in self.structs if struct.lower() == name.replace("-", "").lower()]
        if not found:
            raise LookupError(f"no struct in models/ is called as {name}")
        return found[0]

    def changed(self, struct, values):
        """Of values by the names of fields: the fields that they set to something else than the default."""
        fields = self.structs[struct]
        return {f"{struct}.{name}" for name, value in values.items()
                if name in fields and value not in ([], self.default(fields[name]))}

    def default(self, field):
        """As a trial's document says it; None where there is none that it could say."""
        enum, _, value = field.default.partition("::")
        if value:
            return self.enums.get(enum, {}).get(value)
        try:
            default = json.loads(field.default.replace("{", "[").replace("}", "]"))
        except json.JSONDecodeError:
            return None
        return None if default == [] else default

    def chosen(self, struct, values):
        """The values of enumerations among these: "Kernel::kDot"."""
        return {f"{enum}::{chosen}" for name, value in values.items() if name in self.structs[struct]
                for enum in [self.structs[struct][name].type] if enum in self.enums
                for chosen, word in self.enums[enum].items() if word == value}


class Field:
    """`type` without std::optional; `default` as it is written, "" where nothing is."""

    def __init__(self, type, default):
        self.type = re.sub(r"^std::optional<(.*)>$", r"\1", type)
        self.default = default


def fields_of(body):
    """Of "std::int64_t width = 0, stride = 1; std::vector<int> sizes{1, 2};": width, stride, sizes."""
    body = re.sub(r"[\w:<>= ]+\([^)]*\) const (\{[^}]*\}|= default;)|using [^;]*;|static [^;]*;", "", body)  # functions, types, constants
    for statement in parts_of(body, ";"):
        type, _, declared = after_type(" ".join(statement.split()))
        for declaration in parts_of(declared, ","):
            name, default = re.fullmatch(r"\s*(\w+)\s*=?\s*(.*?)\s*", declaration).groups()
            yield name, Field(type, default)


def after_type(statement):
    """Cut at the first space that is not inside <>."""
    depth = 0
    for at, letter in enumerate(statement):
        depth += (letter == "<") - (letter == ">")
        if letter == " " and depth == 0:
            return statement[:at], letter, statement[at + 1:]
    return "", "", ""


def parts_of(text, separator):
    """Between separators that are not inside brackets; without empty ones."""
    depth, part = 0, ""
    for letter in text + separator:
        depth += (letter in "{(<") - (letter in "})>")
        if letter == separator and depth == 0:
            if part.strip():
                yield part
            part = ""
        else:
            part += letter
