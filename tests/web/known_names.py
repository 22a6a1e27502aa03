# SPDX-License-Identifier: Apache-2.0
"""For schemathesis: three of four requests name what there is ($ABLATE_KNOWN: names by the field that has them), which no schema can say."""
import json
import os

import schemathesis

KNOWN = json.loads(os.environ["ABLATE_KNOWN"])


@schemathesis.hook
def map_body(_, body):
    if not isinstance(body, dict):
        return body
    place = len(json.dumps(body, default=str))
    if place % 4 == 0:
        return body
    return {**body, **{field: names[place % len(names)] for field, names in KNOWN.items() if isinstance(body.get(field), str)}}
