# SPDX-License-Identifier: Apache-2.0
"""The tensors of one file of ground truth."""
import torch
from torch import nn

from random_state import images, randomise


def without_chance(model):
    """No dropout and no dropped path, in training mode either."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
        if hasattr(module, "drop_prob"):
            module.drop_prob = 0.0
    return model


def tensors_of(case):
    model = without_chance(randomise(case.build(), case.name)).eval()
    tensors = {"sd." + name: value.clone() for name, value in model.state_dict().items()}
    tensors["input"] = images(case.name, case.size)
    logits = forward_observed(model, case, tensors)
    target = torch.tensor([3, 7]) % logits.shape[1]
    loss = nn.functional.cross_entropy(logits, target)
    wanted = {name: value for name, value in model.named_parameters() if case.gradients.fullmatch(name)}
    for name, gradient in zip(wanted, torch.autograd.grad(loss, list(wanted.values()))):
        assert gradient.count_nonzero(), f"{case.name}: the gradient of {name} is 0, which proves nothing of it"
        tensors["grad." + name] = gradient
    tensors.update(logits=logits.clone(), target=target, loss=loss.reshape(1))
    train_once(model, tensors)
    tensors = {name: value.detach().contiguous() for name, value in tensors.items()}
    for name, value in tensors.items():
        assert not value.is_floating_point() or value.isfinite().all(), f"{case.name}: {name} is not finite"
    return tensors


def forward_observed(model, case, tensors):
    def keep(name):
        return lambda module, inputs, output: tensors.update({"feat." + name: output.clone()})

    seen = [(name, module) for name, module in model.named_modules() if case.features.fullmatch(name) and is_seen(module)]
    assert seen, f"{case.name}: no feature of {case.features.pattern}"
    hooks = [module.register_forward_hook(keep(name)) for name, module in seen]
    logits = model(tensors["input"])
    for hook in hooks:
        hook.remove()
    return logits


def is_seen(module):
    return type(module).__name__ != "NoAttention"  # stands where the C++ model has nothing


def train_once(model, tensors):
    """Where there is batch normalisation: one pass in training mode, and the running statistics after it."""
    norms = [name for name, module in model.named_modules() if isinstance(module, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    model.train()
    with torch.no_grad():
        tensors["train_logits"] = model(tensors["input"])
    for name in norms:
        for statistic in ("running_mean", "running_var"):
            tensors[f"train.{name}.{statistic}"] = model.get_buffer(f"{name}.{statistic}")
