# SPDX-License-Identifier: Apache-2.0
"""Non-linear embeddings of query, key and value in a timm XCiT, in plain PyTorch (SNE equations 4 to 6)."""
import torch
import torch.nn.functional as F
from torch import nn


class Codes(nn.Module):
    """One vector for each role: of the whole model, or of one block."""

    def __init__(self, size):
        super().__init__()
        self.code = nn.Parameter(torch.randn(3, size) * 0.02)


class NonLinearQKV(nn.Module):
    """x (B, N, dim) -> (B, N, 3 dim). sne: own W1, own W2; psne: own W1, one W2; fsne: one W1, one W2, told apart by codes."""

    def __init__(self, dim, hidden, kind, codes=None, code_size=0):
        super().__init__()
        self.unregistered = (codes,)  # its owner registers it
        first, second = {"sne": (3, 3), "psne": (3, 1), "fsne": (1, 1)}[kind]
        self.fc1 = nn.ModuleList([nn.Linear(dim + code_size, hidden) for _ in range(first)])
        self.fc2 = nn.ModuleList([nn.Linear(hidden, dim) for _ in range(second)])

    def forward(self, x):
        codes, = self.unregistered
        out = []
        for role in range(3):
            y = x if codes is None else torch.cat([x, codes.code[role].expand(*x.shape[:-1], -1)], -1)
            out.append(self.fc2[role % len(self.fc2)](F.relu(self.fc1[role % len(self.fc1)](y))))
        return torch.cat(out, -1)


def xcit_replace(model, kind, hidden, code_size=0, codes_over_blocks=True):
    """Only the blocks of cross-covariance attention change; class attention keeps its linear embedding."""
    if kind == "fsne" and codes_over_blocks:
        model.codes = Codes(code_size)
    for block in model.blocks:
        codes = None
        if kind == "fsne":
            if not codes_over_blocks:
                block.attn.codes = Codes(code_size)
            codes = model.codes if codes_over_blocks else block.attn.codes
        block.attn.qkv = NonLinearQKV(block.attn.proj.in_features, hidden, kind, codes, code_size)
    return model
