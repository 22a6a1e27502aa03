# SPDX-License-Identifier: Apache-2.0
"""Self-distillation as its paper states it (Caron et al., ICCV 2021, section 3.1 and eq. 1 to 3): what the C++ one must agree with.
Backbones are timm's."""
import torch
from torch import nn


class WeightNormed(nn.Module):
    """y = W x, the rows of W being g v / |v|."""

    def __init__(self, width, prototypes):
        super().__init__()
        self.weight_g, self.weight_v = nn.Parameter(torch.ones(prototypes, 1)), nn.Parameter(torch.empty(prototypes, width))

    def forward(self, x):
        return x @ (self.weight_g * self.weight_v / self.weight_v.square().sum(1, keepdim=True).sqrt()).T


class Head(nn.Module):
    def __init__(self, width, hidden, bottleneck, prototypes):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(),
                                 nn.Linear(hidden, bottleneck))
        self.last_layer = WeightNormed(bottleneck, prototypes)

    def forward(self, x):
        z = self.mlp(x)
        return self.last_layer(z / z.square().sum(1, keepdim=True).sqrt())


class Network(nn.Module):
    def __init__(self, backbone, head):
        super().__init__()
        self.backbone, self.head = backbone, head

    def forward(self, *sizes):
        return self.head(torch.cat([self.backbone(images) for images in sizes]))


def targets(logits, centre, temperature):
    return torch.softmax((logits - centre) / temperature, -1)


def loss(student, teacher, temperature):
    """H(teacher's, student's) over all pairs of different views. student [views, B, K], teacher [global views, B, K]."""
    terms = [-(q * torch.log_softmax(p / temperature, -1)).sum(-1).mean()
             for i, q in enumerate(teacher) for j, p in enumerate(student) if i != j]
    return sum(terms) / len(terms)
