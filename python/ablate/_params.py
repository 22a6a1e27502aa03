# SPDX-License-Identifier: Apache-2.0
"""A trial's params: read from its configuration, or, outside of ablate, from defaults and the command line."""
import json
import os
import sys

from ._errors import Error, nearest

HELP = ("-h", "--help")


class _NoParam(KeyError, AttributeError, Error):
    """`params["lr"]` and `params.lr` fail alike."""

    def __str__(self):
        return self.args[0]


class Params(dict):
    """A dict whose keys are attributes as well: `params.lr` is `params["lr"]`, `params.optimiser.name` a param of a mapping. A name
    that dict has itself (`items`, `keys`, `get` …), or `to_dict`, is read in brackets."""

    def __init__(self, values=(), where=""):
        super().__init__()
        object.__setattr__(self, "_where", where)
        for name, value in dict(values).items():
            self[name] = Params(value, f"{where}{name}.") if isinstance(value, dict) else value

    def __missing__(self, name):
        hint = nearest(name, self) if self else (
            "; there are none: in a trial they come from the sweep file's command.params, elsewhere from defaults, as ablate.params(lr=0.1),"
            " or the command line, as --lr=0.1")
        raise _NoParam(f"unknown param '{self._where}{name}'{hint}")

    def __getattr__(self, name):
        if name.startswith("__"):  # asked by copy, pickle and others: what is not there
            raise AttributeError(name)
        return self[name]

    def __setattr__(self, name, value):
        self[name] = value

    def __delattr__(self, name):
        del self[name]

    def to_dict(self):
        """The same as dicts alone, for those that take no class of their own (OmegaConf, YAML)."""
        return {name: value.to_dict() if isinstance(value, Params) else value for name, value in self.items()}

    def __reduce__(self):
        return Params, (dict(self), self._where)


def read_config(path):
    """The trial's document. Throws: Error naming the file."""
    try:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
    except OSError as error:
        raise Error(f"ABLATE_CONFIG={path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Error(f"ABLATE_CONFIG={path}: not a trial's JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("params", {}), dict):
        raise Error(f"ABLATE_CONFIG={path}: expected an object with 'params'")
    return document


def of_trial(params, defaults):
    """The trial's params over the script's defaults. Throws: Error for one that the script does not have: a misspelt param must not
    train the default without a word."""
    if not defaults:
        return Params(params)
    return Params(_merged(params, defaults, ""))


def _merged(params, defaults, where):
    merged = dict(defaults)
    for name, value in params.items():
        if name not in defaults:
            raise Error(f"the sweep file sets param '{where}{name}', which this script does not have{nearest(name, defaults)}")
        default = defaults[name]
        value = _as_default(value, default, f"{where}{name}")
        merged[name] = _merged(value, default, f"{where}{name}.") if isinstance(default, dict) and default and isinstance(value, dict) else value
    return merged


KINDS = ((bool, "true or false"), (str, "a text"), (int, "a whole number"), (float, "a number"), (dict, "a mapping"), ((list, tuple), "a list"))


def _as_default(value, default, name):
    """The value as what the default is. None, in either place, says nothing of a kind. Throws: Error for one that is something else."""
    kind, words = next(((kind, words) for kind, words in KINDS if isinstance(default, kind)), (None, ""))
    if value is None or kind is None:
        return value
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind is float and is_number:
        return float(value)
    if kind is int and is_number and value == value // 1:  # 1e3 in a file
        return int(value)
    if isinstance(value, kind) and (kind is bool or not isinstance(value, bool)):
        return value
    in_quotes = "; write it in quotes" if kind is str and not isinstance(value, (dict, list)) else ""
    raise Error(f"the sweep file sets param '{name}' to {json.dumps(value)}; expected {words}, as the script's default {default!r}{in_quotes}")


def of_command_line(arguments, defaults):
    """Defaults, and over them `--lr=0.2`, `--lr 0.2` or `lr=0.2`; `--optimiser.name=adam` for one of a mapping.
    Returns: the params, and the seed that `--seed` names where that is no param, or None.
    Throws: Error for what is not understood."""
    values, seed = _copy(defaults), None
    at = 0
    while at < len(arguments):
        word = arguments[at]
        at += 1
        name, equals, text = word.partition("=")
        if name.startswith("--"):
            name = name[2:]
        elif not equals:
            raise Error(f"unexpected argument '{word}'; expected --NAME=VALUE")
        if not equals:
            if at == len(arguments):
                raise Error(f"--{name} has no value; expected --{name}=VALUE")
            text = arguments[at]
            at += 1
        if name == "seed" and "seed" not in defaults:
            seed = _value(text, 0, "seed")
            continue
        _put(values, name, text, defaults)
    return Params(values), seed


def _copy(values):
    return {name: _copy(value) if isinstance(value, dict) else value for name, value in values.items()}


def _put(values, name, text, defaults):
    parts, place, known = name.split("."), values, defaults
    for part in parts[:-1]:
        if defaults and not (isinstance(known, dict) and isinstance(known.get(part), dict)):
            raise Error(f"unknown param '{name}'{nearest(name, _names(defaults))}")
        known = known.get(part, {})
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise Error(f"param '{name}': '{part}' is a value, not a mapping")
    if defaults and parts[-1] not in known:
        raise Error(f"unknown param '{name}'{nearest(name, _names(defaults))}")
    place[parts[-1]] = _value(text, known.get(parts[-1]), name)


def _names(defaults, where=""):
    for name, value in defaults.items():
        if isinstance(value, dict):
            yield from _names(value, f"{where}{name}.")
        else:
            yield f"{where}{name}"


def _value(text, default, name):
    """The text as what the default is; as JSON, or else a text, where there is none."""
    if isinstance(default, str):
        return text
    if isinstance(default, bool):
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise Error(f"param '{name}': '{text}' is neither true nor false")
    for kind, words in ((int, "a whole number"), (float, "a number")):
        if isinstance(default, kind):
            try:
                return kind(text)
            except ValueError:
                raise Error(f"param '{name}': '{text}' is not {words}") from None
    try:
        value = json.loads(text)
    except ValueError:
        if isinstance(default, (list, tuple, dict)):
            raise Error(f"param '{name}': '{text}' is not JSON of a {type(default).__name__}") from None
        return text
    return value


def script_arguments():
    """The command line of a script; nothing in a notebook or an interpreter, whose arguments are others'."""
    main = sys.modules.get("__main__")
    if "ipykernel" in sys.modules or not getattr(main, "__file__", None):
        return []
    return sys.argv[1:]


def usage(defaults):
    lines = [f"usage: {os.path.basename(sys.argv[0])} [--NAME=VALUE]…", "", "params and their defaults:"]
    flat = list(_names(defaults))
    for name in flat:
        value = defaults
        for part in name.split("."):
            value = value[part]
        lines.append(f"  --{name}={value}")
    return "\n".join(lines if flat else lines[:1] + ["", "--NAME=VALUE sets a param, --seed=NUMBER the seed"])
