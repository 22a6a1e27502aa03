# SPDX-License-Identifier: Apache-2.0
"""What `GET /api` says of answers, and whether they are so."""
import copy
import os
import pathlib
import subprocess
import sys
import tempfile

try:
    import jsonschema
except ImportError:
    jsonschema = None
try:
    import schemathesis
except ImportError:
    schemathesis = None


def closed(schema):
    """The schema, but that an object has no key which it does not name."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: {name: closed(each) for name, each in value.items()} if key == "properties" else closed(value) for key, value in schema.items()}
    if made.get("type") == "object" and isinstance(made.get("properties"), dict):
        made["additionalProperties"] = False
    return made


class Described:
    """An OpenAPI document."""

    def __init__(self, document):
        self.document = document
        self.components = closed(copy.deepcopy(document["components"]))

    def check(self, method, path, status, answer):
        """Fails where an answer has not the schema of its status, or a key that this lacks; a text is no JSON."""
        responses = self.document["paths"][path][method]["responses"]
        response = responses.get(str(status), responses["default"])
        if "$ref" in response:
            response = self.document["components"]["responses"][response["$ref"].rpartition("/")[2]]
        for kind, content in response["content"].items():
            if kind == "application/json":
                schema = {"components": self.components, **closed(content["schema"])}
                jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(answer)
            else:
                assert isinstance(answer, str), (path, kind, answer)


def schemathesis_finds(url, settings, *options, environment=None):
    """What schemathesis says against the server at `url`, with a fixed seed; empty: nothing. `settings`: of its schemathesis.toml."""
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "schemathesis.toml").write_text(settings)
        done = subprocess.run([pathlib.Path(sys.executable).parent / "schemathesis", "run", url + "/api", "--seed", "1", "--max-examples", "40",
                               "--phases", "examples,coverage,fuzzing", "--request-timeout", "60", "--suppress-health-check", "all",
                               "--warnings", "off", *options],
                              cwd=folder, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1", **(environment or {})})
    return "" if done.returncode == 0 else done.stdout + done.stderr
