# SPDX-License-Identifier: Apache-2.0
"""Words that several families have."""

# Timm's for the sizes of transformers, where the keys of a trial are others.
TIMM = dict(embed_dim="dim", num_heads="heads", patch_size="patch")

# The references' for keys; "nocb": without context broadcasting.
KEY_OF_KIND = dict(
    none=dict(method="linear"), spatial=dict(method="spatialk"), kua=dict(method="kua"), simple=dict(method="simplek"),
    vanilla=dict(method="vanillak"), vanilla_nocb=dict(method="vanillak", broadcasting="none"))


def key_of_kind(kind, charts):
    """The section `key` of a trial."""
    return dict(KEY_OF_KIND[kind], charts=charts)
