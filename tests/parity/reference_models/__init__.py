# SPDX-License-Identifier: Apache-2.0
"""What the papers' own parts compute, in plain PyTorch: what the C++ models must agree with, where timm has nothing.

Written from the papers' texts, in the most direct way. Where authors published code (MSF with interleaved groups, XCiT), these and
timm were found equal to it within 3e-7.
"""
from .manifold_key import KeyAttention, KeyViT, ManifoldKey
from .msf import ROLES, FeedForward, SharedAttention, SimpleViT, grouped_linear, patchify, projected, sincos_2d
from .swin import SwinAttention, swin_replace
from .xcit import Codes, NonLinearQKV, xcit_replace
