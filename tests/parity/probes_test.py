#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Has the trainer look into small models with the weights of the ground truth, and demands what is computed here.

  probes_test.py TRAINER GROUND_TRUTH

What a probe finds is computed here a second time, by the models of the references: with hooks where it looks at activations, from
the state alone where it looks at matrices. Values, arrays and the sizes of pictures are compared.
"""
import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from environment import prepare

TOLERANCE = 1e-5  # of the largest value of an array
PROCESSES = 2
ROLES = ("query", "key", "value", "probe", "weight")


# ---- what is looked at ---------------------------------------------------------------------------------------------------------


def trunk_of(model, images):
    """What enters the first block, and what leaves each: tokens [B, …, channels]."""
    import torch
    family = type(model).__name__
    with torch.no_grad():
        if family in ("SimpleViT", "KeyViT"):  # a block is attention, where there is one, and a network
            starts, fed = [], []
            hooks = [ff.register_forward_hook(lambda _, inputs, output: fed.append(inputs[0] + output)) for ff in model.ff]
            first = model.attn["0"] if family == "SimpleViT" else model.attn[0]
            hooks.append(first.register_forward_pre_hook(lambda _, inputs: starts.append(inputs[0])))
            model(images)
            for hook in hooks:
                hook.remove()
            return starts + fed
        if hasattr(model, "layer1"):
            blocks = [block for stage in (model.layer1, model.layer2, model.layer3, model.layer4) for block in stage]
        elif hasattr(model, "layers"):
            blocks = [block for stage in model.layers for block in stage.blocks]
        else:
            blocks = list(model.blocks)
        seen = []
        hooks = [blocks[0].register_forward_pre_hook(lambda _, inputs: seen.insert(0, inputs[0]))]
        hooks += [block.register_forward_hook(lambda _m, _i, output: seen.append(output)) for block in blocks]
        model(images)
        for hook in hooks:
            hook.remove()
        return [x.permute(0, 2, 3, 1) for x in seen] if hasattr(model, "layer1") else seen


def feature_norms(model, images):
    norms = [x.double().norm(dim=-1).mean().item() for x in trunk_of(model, images)]
    return dict(values=dict(embedding=norms[0], last=norms[-1], largest=max(norms)), arrays=dict(norm=norms))


def heads(matrix, count):
    """A matrix in R^{d x heads d̂}, head by head."""
    return list(matrix.double().chunk(count, 1))


def msf_matrices(attention):
    """Of QUERY, KEY, VALUE, PROBE and WEIGHT in R^{d x inner}, by the state of an attention with shared matrices."""
    import torch
    roles, groups, layout = "QKVP" if attention.probe == "inside" else "QKV", attention.groups, attention.layout
    stored = attention.mat if hasattr(attention, "mat") else attention.weight
    letters = list(dict.fromkeys(attention.role[r] for r in roles))
    found = {}
    for role in roles:
        letter, (out, width) = attention.role[role], stored[attention.role[role]].shape
        whole = torch.zeros(width * groups, out, dtype=torch.float64)
        for j in range(out):  # which row of which group makes output j
            if layout == "interleaved":
                group, row = j % groups, j % groups * (out // groups) + j // groups
            elif layout == "block":
                group, row = j // (out // groups), j
            else:
                group, row = (letters.index(letter) * out + j) // (len(letters) * out // groups), j
            whole[group * width:(group + 1) * width, j] = stored[letter][row].double()
        found[role] = whole
    letter = attention.role["W"]
    if letter in (attention.role[r] for r in roles):
        found["W"] = stored[letter].double().t()
    else:
        found["W"] = (stored[letter] if hasattr(attention, "mat") else attention.proj.weight).double()
    return {dict(Q="query", K="key", V="value", P="probe", W="weight")[r]: m for r, m in found.items()}


def projections_of(attention):
    """By role a matrix in R^{d x inner}; None for a module that is no such attention."""
    if hasattr(attention, "role"):
        return msf_matrices(attention)
    found = {}
    if hasattr(attention, "qkv"):
        if not hasattr(attention.qkv, "weight"):
            return None
        found = dict(zip(ROLES, attention.qkv.weight.chunk(3)))
    elif hasattr(attention, "to_q"):
        found = dict(query=attention.to_q.weight, value=attention.to_v.weight)
        if hasattr(attention.key, "weight"):
            found["key"] = attention.key.weight
    elif hasattr(attention, "qv"):
        found = dict(zip(("query", "value"), attention.qv.weight.chunk(2)))
    elif hasattr(attention, "names"):  # the mean shift in a Swin's windows, in interleaved groups
        attention.role = dict(zip("QKVPW", [*attention.names, *("-w" if len(attention.names) == 3 else "w")]))
        attention.probe, attention.layout = "inside" if len(attention.names) == 4 else "none", "interleaved"
        return msf_matrices(attention)
    else:
        return None
    return dict({role: matrix.double().t() for role, matrix in found.items()}, weight=attention.proj.weight.double())


def similarity(x, y):
    """(1/d̂) trace(U_X U_Xᵀ U_Y U_Yᵀ), each U of as many columns as its matrix has rank, d̂ the lower of them."""
    import torch

    def projector(matrix):
        u, s, _ = torch.linalg.svd(matrix, full_matrices=False)
        u = u[:, s > s.max() * max(matrix.shape) * torch.finfo(torch.float32).eps]
        return u @ u.t(), u.shape[1]
    (onto_x, rank_x), (onto_y, rank_y) = projector(x), projector(y)
    return (torch.trace(onto_x @ onto_y) / min(rank_x, rank_y)).item()


def subspace_similarity(model, images):
    import torch
    layers = []
    for module in model.modules():
        matrices = projections_of(module) if hasattr(module, "proj") or hasattr(module, "mat") else None
        if not matrices or len(matrices) < 2:
            continue
        count = getattr(module, "heads", None) or module.num_heads
        cut = {role: heads(matrix, count) for role, matrix in matrices.items()}
        layers.append([[[similarity(cut[a][h], cut[b][h]) if a in cut and b in cut else float("nan") for b in ROLES] for a in ROLES]
                       for h in range(count)])
    most = max(len(layer) for layer in layers)
    nothing = [[float("nan")] * 5] * 5
    everything = torch.tensor([layer + [nothing] * (most - len(layer)) for layer in layers], dtype=torch.float64)
    mean = everything.flatten(0, 1).nanmean(0)
    values = {f"{a}-{b}": mean[i, j].item() for i, a in enumerate(ROLES) for j, b in enumerate(ROLES)
              if i < j and not mean[i, j].isnan()}
    return dict(values=values, arrays=dict(mean=mean, similarity=everything))


def code_norms(model, images):
    import torch
    codes = [value.double() for name, value in model.state_dict().items() if name.split(".")[-1] == "code"]
    norms = torch.stack([code.norm(dim=1) for code in codes])
    products = torch.stack([torch.nn.functional.normalize(code, dim=1) for code in codes])
    products = products @ products.mT
    values = dict(zip(ROLES, norms.mean(0).tolist()))
    values.update({f"{ROLES[i]}-{ROLES[j]}": products.mean(0)[i, j].item() for i, j in ((0, 1), (0, 2), (1, 2))})
    return dict(values=values, arrays=dict(norm=norms, product=products))


def softmaxes(model, images):
    """Every softmax of the model's attention between tokens, in their order: [B, heads, queries, keys]."""
    import torch
    found, usual = [], torch.Tensor.softmax

    def kept(self, *arguments, **named):
        result = usual(self, *arguments, **named)
        found.append(result)
        return result
    torch.Tensor.softmax = kept
    try:
        with torch.no_grad():
            model(images)
    finally:
        torch.Tensor.softmax = usual
    return found


def maps_of(weights):
    side = int(weights.shape[-1] ** 0.5)
    others = weights.shape[-1] - side * side
    asked = weights[:, :, 0] if others or weights.shape[2] == 1 else weights.mean(2)
    return asked[..., others:].reshape(*asked.shape[:2], side, side)


def entropy(maps):
    import torch
    p = maps.flatten(2) / maps.flatten(2).sum(-1, keepdim=True)
    return -torch.special.xlogy(p, p).sum(-1).mean().item()


def found_maps(maps):
    return dict(values=dict(entropy=entropy(maps)), arrays=dict(map=maps),
                picture=(len(maps), maps.shape[1] + 1))  # tiles: an image and its heads in each row


def attention(model, images):
    return found_maps(maps_of(softmaxes(model, images)[-1].double()))


def joint_attention(model, images):
    import torch
    joint = None
    for weights in softmaxes(model, images):
        step = (weights.double() + torch.eye(weights.shape[-1])) / 2
        joint = step if joint is None else step @ joint
    return found_maps(maps_of(joint))


def class_attention(model, images):
    weights = [w for w in softmaxes(model, images) if w.shape[2] == 1]
    return found_maps(maps_of(weights[-1].double()))


SIZES = (32, 48, 80)  # that the models take, of which one is not the trained one at least
CROP = 0.875


def write_images(folder, classes):
    """A data set in folders: pictures of some sizes, none of them square, in each class as many."""
    import numpy
    from PIL import Image
    chance = numpy.random.default_rng(7)
    for number in range(4 * classes):
        into = os.path.join(folder, "val", f"{number % classes:02}")
        os.makedirs(into, exist_ok=True)
        os.makedirs(into.replace("val", "train"), exist_ok=True)
        coarse = chance.integers(0, 256, (5, 7, 3), dtype=numpy.uint8)
        image = Image.fromarray(coarse).resize((90 + number, 70 + 2 * number), Image.BICUBIC)
        image.save(os.path.join(into, f"{number:03}.png"))
        image.save(os.path.join(into.replace("val", "train"), f"{number:03}.png"))


def evaluated(folder, size):
    """As timm evaluates: the shorter side to size / CROP, the centre of it, normalised as for ImageNet; with the labels."""
    import numpy
    import torch
    from PIL import Image
    images, labels = [], []
    for label, name in enumerate(sorted(os.listdir(os.path.join(folder, "val")))):
        for file in sorted(os.listdir(os.path.join(folder, "val", name))):
            image = Image.open(os.path.join(folder, "val", name, file))
            side, shorter = int(size / CROP), min(image.size)
            wide, high = (side if length == shorter else int(side * length / shorter) for length in image.size)
            image = image.resize((wide, high), Image.BICUBIC)
            left, top = (round((length - size) / 2) for length in (wide, high))
            images.append(torch.from_numpy(numpy.array(image.crop((left, top, left + size, top + size)))).permute(2, 0, 1))
            labels.append(label)
    mean, std = (torch.tensor(three).reshape(3, 1, 1) for three in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    return (torch.stack(images).float() / 255 - mean) / std, torch.tensor(labels)


def accuracy_by_resolution(model, folder):
    import torch
    found = dict(top1=[], top5=[], loss=[])
    for size in SIZES:
        images, labels = evaluated(folder, size)
        with torch.no_grad():
            scores = model(images).double()
        places = (scores > scores.gather(1, labels[:, None])).sum(1)
        found["top1"].append(100 * (places < 1).double().mean().item())
        found["top5"].append(100 * (places < 5).double().mean().item())
        found["loss"].append(torch.nn.functional.cross_entropy(scores, labels).item())
    return dict(values={f"{name}-{size}": value for name, all in found.items() for size, value in zip(SIZES, all)}, arrays=found)


# A probe with its settings, what computes the same, and the cases that are looked at.
COMPARED = [
    ("feature-norms", [], feature_norms,
     ["ref_msf_QKVPW", "ref_msf_placement", "timm_vit_small_case", "ref_keyvit_kua", "timm_swin_small_case", "timm_swinv2_small",
      "timm_xcit_small_case_p8_48", "ref_xcit_no_attention", "timm_resnet_small_case"]),
    ("subspace-similarity", [], subspace_similarity,
     ["ref_msf_QKVPW", "ref_msf_QKV-W", "ref_msf_QKKQQ", "ref_msf_QKV-V", "ref_msf_QKVPW_g2_interleave", "ref_msf_QKVPW_g2_block",
      "ref_msf_QKKPW_g4_fused", "ref_msf_residual", "ref_msf_tied_scale", "timm_vit_small_case", "ref_keyvit_none", "ref_keyvit_kua",
      "timm_swin_small_case", "ref_swin_msf-g2", "ref_swin_tied", "ref_swin_kua", "timm_swinv2_small", "timm_xcit_sizes"]),
    ("code-norms", [], code_norms, ["ref_xcit_fsne8", "ref_xcit_fsne8_unshared", "ref_xcit_shared_ends"]),
    ("attention", [], attention,
     ["ref_msf_QKVPW", "ref_msf_dot_probe", "ref_msf_sizes", "timm_vit_small_case", "ref_keyvit_vanilla", "timm_swin_one_window"]),
    ("attention", ["joint=true"], joint_attention, ["ref_msf_gauss_orig", "timm_vit_small_case", "ref_keyvit_kua"]),
    ("accuracy-by-resolution", [f"sizes={','.join(map(str, SIZES))}"], accuracy_by_resolution,
     ["timm_resnet_small_case", "timm_xcit_small_case_p8_48"]),
    ("class-attention", [], class_attention, ["timm_xcit_small_case_p8_64", "timm_xcit_sizes", "ref_xcit_tokens"]),
]


# ---- the comparison ------------------------------------------------------------------------------------------------------------


def probed(program, document, truth, case_file, probe, settings):
    from safetensors.torch import save_file
    with tempfile.TemporaryDirectory() as folder:
        trial, weights = (os.path.join(folder, name) for name in ("trial.json", "state.safetensors"))
        with open(trial, "w") as text:
            json.dump({key: value for key, value in document.items() if key != "images"}, text)
        save_file({name[3:]: value for name, value in truth.items() if name.startswith("sd.")}, weights)
        images = ["--data-root", document["images"]] if "images" in document else ["--image", case_file]
        command = [program, "probe", "--config", trial, "--weights", weights, *images, "--json", probe]
        done = subprocess.run(command + [word for setting in settings for word in ("--with", f"{probe}.{setting}")],
                              env=dict(os.environ, OMP_NUM_THREADS="1"), capture_output=True, text=True)
    if done.returncode:
        raise ValueError(" ".join(done.stderr.split()) or f"the trainer ended with {done.returncode}")
    return json.loads(done.stdout)["probes"][0]


def differences(found, wanted, case):
    import torch
    if found["values"].keys() != wanted["values"].keys():
        yield f"values {sorted(found['values'])}, expected {sorted(wanted['values'])}"
    elif found["arrays"].keys() != wanted["arrays"].keys():
        yield f"arrays {sorted(found['arrays'])}, expected {sorted(wanted['arrays'])}"
    else:
        for name, value in wanted["values"].items():
            if abs(found["values"][name] - value) > TOLERANCE * max(1, abs(value)):
                yield f"{name} is {found['values'][name]}, expected {value}"
        for name, array in wanted["arrays"].items():
            there = found["arrays"][name]
            shape = [len(axis["places"]) for axis in there["axes"]]
            here = torch.as_tensor(array, dtype=torch.float64)
            values = torch.tensor([float(value) for value in there["values"]], dtype=torch.float64)
            if shape != list(here.shape):
                yield f"{name} is {shape}, expected {list(here.shape)}"
            elif not torch.allclose(values.reshape(shape), here, rtol=0, atol=TOLERANCE * here.nan_to_num().abs().max().item(),
                                    equal_nan=True):
                yield f"{name} differs by {(values.reshape(shape) - here).abs().nan_to_num().max().item():g}"
    if "picture" in wanted:
        rows, columns = wanted["picture"]
        side = case.size * max(1, -(-112 // case.size))
        size = [(count * (side + 4) - 4) for count in (columns, rows)]
        picture = found["pictures"][0]
        if [picture["width"], picture["height"]] != size:
            yield f"a picture of {picture['width']} x {picture['height']}, expected {size}"


def classes_of(folder, case):
    from safetensors.torch import load_file
    truth = load_file(os.path.join(folder, case.name + ".safetensors"))
    return next(len(truth[name]) for name in ("sd.fc.bias", "sd.head.bias") if name in truth)


def images_of(folder, case):
    """Of as many classes as the case's model tells apart."""
    return os.path.join(folder, f"images-{case.name}")


def found_by(trainer, folder, case, probe, settings):
    """What the trainer finds, or what it complains of."""
    from safetensors.torch import load_file
    from as_configuration import trial_document
    from configuration_test import configuration_in
    file = os.path.join(folder, case.name + ".safetensors")
    try:
        document = trial_document(case, configuration_in(file), trainer)
        if probe == "accuracy-by-resolution":
            document.update(images=images_of(folder, case), recipe=dict(use="demo", eval_crop_ratio=CROP, interpolation="bicubic"))
        return probed(trainer.program, document, load_file(file), file, probe, settings)
    except ValueError as error:
        return str(error)


def complaints_of(found, folder, case, compute):
    from safetensors.torch import load_file
    from one_file import without_chance
    if isinstance(found, str):
        return [found]
    truth = load_file(os.path.join(folder, case.name + ".safetensors"))
    model = without_chance(case.build()).eval()
    model.load_state_dict({name[3:]: value for name, value in truth.items() if name.startswith("sd.")})
    looked_at = images_of(folder, case) if compute is accuracy_by_resolution else truth["input"]
    return list(differences(found, compute(model, looked_at), case))


def main():
    prepare()
    from case import small_cases
    from trainer import Trainer
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", help="the program ablate-trainer")
    parser.add_argument("truth", help="folder of the ground truth")
    options = parser.parse_args()
    cases, trainer = {case.name: case for case in small_cases()}, Trainer(options.trainer)
    work = [(cases[name], probe, settings, compute) for probe, settings, compute, names in COMPARED for name in names]
    for case, _, _, compute in work:
        if compute is accuracy_by_resolution:
            shutil.rmtree(images_of(options.truth, case), ignore_errors=True)
            write_images(images_of(options.truth, case), classes_of(options.truth, case))
    with ThreadPoolExecutor(PROCESSES) as pool:
        found = list(pool.map(lambda job: found_by(trainer, options.truth, *job[:3]), work))
    complaints = [f"{' '.join([probe, *settings, case.name])}: {text}"
                  for (case, probe, settings, compute), there in zip(work, found, strict=True)
                  for text in complaints_of(there, options.truth, case, compute)]
    print("\n".join(complaints) or f"{len(work)} probes of small models found what the references do")
    sys.exit(bool(complaints))


if __name__ == "__main__":
    main()
