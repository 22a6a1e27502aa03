# SPDX-License-Identifier: Apache-2.0
"""Each family of backbones is a file here: its cases, what they prove and what a trial says of them. A module has

  NAME           in the names of its cases, after "ref_" or "timm_": ref_xcit_no_lpi
  FAMILY         its name in a trial; the C++ struct of its options is called so too
  FEATURES       what is observed inside a model
  cases()        (name, source, configuration, what builds it) of small models, in which every part and every option stands
  large_cases()  the same at the sizes that papers print; the configuration is that of a trial
  GRADIENTS      those that are compared of a large model: of the first layers, which depend on all others, and one of each kind

and where it needs them

  WORDS, VALUES          of a case's configuration, where the keys of a trial and what they say are called otherwise
  spelled_out(words)     a configuration whose words say something else than a key each, so that they do
  FIELDS                 of the C++ options, where they are called otherwise than the keys of a trial
  HAS_OWN_ATTENTION      a layer of which a trial changes nothing has no ablated attention, but one of the family's own
  WITHOUT_TRIAL          cases that no trial can ask for, and why
  covers(words, headers) what such a case proves beside the options whose names are its words
  GIVEN, PASSED_ON       what its parts are given wherever they are built, and what they have of its options (covers.py)
  EXCEPTIONS             what no case can prove, and why
  CONVOLUTION_GAIN       of random weights, which keeps the activations of deep convolutional networks in a sane range
"""
import importlib
import pkgutil
import re

MODULES = [importlib.import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)]
FAMILIES = {module.NAME: module for module in MODULES}
_BEGINNING = re.compile("(?:ref|timm)_(" + "|".join(sorted(FAMILIES, reverse=True)) + ")")  # the longer names first


def of_case(name):
    """The module of the family that a case's name tells."""
    return FAMILIES[_BEGINNING.match(name).group(1)]


def all_have(attribute):
    """What the modules say in a dict of that name, all together: pairs."""
    return [pair for module in MODULES for pair in getattr(module, attribute, {}).items()]
