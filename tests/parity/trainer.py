# SPDX-License-Identifier: Apache-2.0
"""What ablate-trainer knows of trials: the keys of a document with their values, and what a document comes to."""
import json
import subprocess


class Trainer:
    def __init__(self, program):
        self.program = program
        sections = json.loads(self.run("presets", "--schema"))["properties"]
        self.data, self._model = (sections[name]["properties"] for name in ("data", "model"))

    def run(self, *arguments, text=None):
        return subprocess.run([self.program, *arguments], input=text, capture_output=True, text=True, check=True).stdout

    def model(self, family):
        """The keys of the section `model` that a family has, each with its schema."""
        if family not in self._model["family"]["enum"]:
            raise LookupError(f"a trial has no family {family}")
        return {key: schema for key, schema in self._model.items() if family in schema.get("x-families", [family])}

    def documents(self, trials):
        """Of each what it comes to: "document", every key that has an effect, and "canonical", those that are not as by default."""
        lines = self.run("describe", "--stdin", "--document", text="".join(json.dumps(trial) + "\n" for trial in trials))
        answers = [json.loads(line) for line in lines.splitlines()]
        for trial, answer in zip(trials, answers, strict=True):
            if "error" in answer:
                raise ValueError(f"{answer['error']} in {json.dumps(trial)}")
        return answers


def layer_of(schema):
    """The keys of one layer, where they may differ from layer to layer; None elsewhere."""
    return schema["oneOf"][1]["items"]["properties"] if "oneOf" in schema else None
