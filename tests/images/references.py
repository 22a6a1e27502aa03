# SPDX-License-Identifier: Apache-2.0
"""Each operation and policy as Pillow, torchvision and timm do it, by the name it has in named_operation.cc. The policies are the
libraries' own, and get their chance from a RandomStream."""
import contextlib
import pathlib
import random
import sys
import unittest.mock

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter, ImageOps

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "parity"))
from environment import import_timm

timm = import_timm()  # before torchvision, whose compiled operators may belong to another build of torch: only its Python is used
import torch
import torchvision.transforms as T
import torchvision.transforms.functional as F
from timm.data import auto_augment, mixup, random_erasing
from timm.data.transforms import RandomResizedCropAndInterpolation

from random_stream import RandomStream

FILTERS = {"nearest": Image.Resampling.NEAREST, "bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
MEAN_COLOUR = (124, 116, 104)


def sampling(name):
    return {"resample": FILTERS[name], "fillcolor": MEAN_COLOUR}


def affine(image, *arguments):
    *numbers, name = arguments
    return image.transform(image.size, Image.Transform.AFFINE, numbers, **sampling(name))


@contextlib.contextmanager
def drawing_from(stream):
    """Python's, NumPy's and PyTorch's global chance, as far as the policies use it, comes from the stream."""
    swapped = []  # torchvision and timm draw top, then left; ours left, then top

    def top_then_left(low, high):
        if not swapped:
            left = stream.next()
            swapped.append(left)
            return low + stream.next() % (high - low + 1)
        return low + swapped.pop() % (high - low + 1)

    def choose(population, weights=None):
        return [population[stream.below(len(population))]]

    patches = {
        "PIL.ImageOps.posterize": posterise,
        "random.random": stream.uniform, "random.uniform": stream.uniform,
        "random.gauss": lambda mean, deviation: mean + deviation * stream.normal(),
        "random.choice": lambda sequence: sequence[stream.below(len(sequence))], "random.choices": choose,
        "random.randint": lambda low, high: low + stream.below(high - low + 1),
        "numpy.random.choice": lambda ops, count, replace, p: [ops[stream.below(len(ops))] for _ in range(count)],
        "numpy.random.rand": stream.uniform, "numpy.random.beta": stream.beta,
        "numpy.random.randint": lambda low, high, size=None: low + stream.below(high - low),
        "torch.randperm": lambda n: torch.tensor(stream.order(n)),
        "torch.Tensor.uniform_": lambda tensor, low, high: tensor.fill_(stream.uniform(low, high)),
    }
    with contextlib.ExitStack() as stack:
        for name, function in patches.items():
            stack.enter_context(unittest.mock.patch(name, function))
        yield lambda: stack.enter_context(unittest.mock.patch("random.randint", top_then_left))


def posterise(image, bits, pillow=ImageOps.posterize):
    """timm asks for 0 bits, and fewer, at one end of its magnitudes. Pillow's mask makes that black, but 13.0.0 checks and refuses."""
    return pillow(image, bits) if bits > 0 else Image.new("RGB", image.size)


def colour_jitter(image, brightness, contrast, saturation, hue, seed):
    with drawing_from(RandomStream(seed)):
        return T.ColorJitter(brightness, contrast, saturation, hue)(image)


def three_augment(image, kind, seed):
    """The compositions of tk1980/MSFtransformer, presets.py, and facebookresearch/deit, augment.py."""
    if kind == "msf":
        one = [T.Grayscale(3), T.RandomSolarize(128.0, p=1.0), T.GaussianBlur(kernel_size=11)]
    else:
        one = [T.Grayscale(3), ImageOps.solarize, lambda i: i.filter(ImageFilter.GaussianBlur(radius=random.uniform(0.1, 2.0)))]
    with drawing_from(RandomStream(seed)):
        return T.ColorJitter(0.3, 0.3, 0.3)(T.RandomChoice(one)(image))


def rand_augment(image, text, seed):
    policy = auto_augment.rand_augment_transform(text, {"translate_const": 100, "img_mean": MEAN_COLOUR})
    with drawing_from(RandomStream(seed)):
        return policy(image)


def trivial_augment(image, name, seed):
    """PyTorch's linspace of 32 by 30 steps has 16 or 15.999999, of which 15 is taken, by the processor's instructions: here 16."""
    stream, single = RandomStream(seed), np.float32

    def line(low, high, steps):
        step = (single(high) - single(low)) / single(steps - 1)
        return torch.tensor([single(low) + step * single(i) if i < steps // 2 else single(high) - step * single(steps - 1 - i)
                             for i in range(steps)])

    patches = {"torch.randint": lambda high, size, dtype=None: torch.tensor([stream.below(high)]), "torch.linspace": line}
    with contextlib.ExitStack() as stack:
        for function, ours in patches.items():
            stack.enter_context(unittest.mock.patch(function, ours))
        return T.TrivialAugmentWide(interpolation=T.InterpolationMode(name))(image)


IMAGES = {
    "brightness": F.adjust_brightness,
    "contrast": F.adjust_contrast,
    "saturation": F.adjust_saturation,
    "hue": F.adjust_hue,
    "sharpness": lambda image, factor: ImageEnhance.Sharpness(image).enhance(factor),
    "grayscale": lambda image: T.Grayscale(3)(image),
    "invert": ImageOps.invert,
    "solarise": ImageOps.solarize,
    "solarise_add": auto_augment.solarize_add,
    "posterise": posterise,
    "equalise": ImageOps.equalize,
    "auto_contrast": ImageOps.autocontrast,
    "affine": affine,
    "shear_x": lambda image, factor, name: auto_augment.shear_x(image, factor, **sampling(name)),
    "shear_y": lambda image, factor, name: auto_augment.shear_y(image, factor, **sampling(name)),
    "translate": lambda image, right, down, name: affine(image, 1, 0, right, 0, 1, down, name),
    "translate_x": lambda image, part, name: auto_augment.translate_x_rel(image, part, **sampling(name)),
    "translate_y": lambda image, part, name: auto_augment.translate_y_rel(image, part, **sampling(name)),
    "rotate": lambda image, degrees, name: image.rotate(degrees, **sampling(name)),
    "gaussian_blur": lambda image, kernel, sigma: F.gaussian_blur(image, kernel, sigma),
    "box_gaussian_blur": lambda image, radius: image.filter(ImageFilter.GaussianBlur(radius)),
    "flip": F.hflip,
    "crop": lambda image, left, top, width, height: image.crop((left, top, left + width, top + height)),
    "resize": lambda image, width, height, name: image.resize((width, height), FILTERS[name]),
    "resize_box": lambda image, width, height, left, top, right, bottom, name: image.resize((width, height), FILTERS[name], (left, top, right, bottom)),
    "centre": lambda image, side, size, name: F.center_crop(F.resize(image, side, T.InterpolationMode(name)), size),
    "pad": lambda image, left, top, right, bottom: F.pad(image, [left, top, right, bottom], fill=MEAN_COLOUR),
    "pad_reflected": lambda image, *frame: F.pad(image, list(frame), padding_mode="reflect"),
    "colour_jitter": colour_jitter,
    "three_augment": three_augment,
    "rand_augment": rand_augment,
    "trivial_augment": trivial_augment,
}


def resized_crop(width, height, area_low, area_high, aspect_low, aspect_high, seed):
    with drawing_from(RandomStream(seed)) as swap_corners:
        swap_corners()
        image = Image.new("RGB", (width, height))
        top, left, h, w = RandomResizedCropAndInterpolation.get_params(image, (area_low, area_high), (aspect_low, aspect_high))
    return left, top, w, h


def erasure(width, height, probability, seed):
    """What was erased is read off the image: everything that is no longer 7."""
    stream, image = RandomStream(seed), torch.full((3, height, width), 7.0)
    with drawing_from(stream):
        random_erasing.RandomErasing(probability, mode="pixel", device="cpu")(image)
    rows, columns = (image != 7).all(0).nonzero(as_tuple=True)
    if len(rows) == 0:
        return (0,)
    return 1, columns.min(), rows.min(), columns.max() - columns.min() + 1, rows.max() - rows.min() + 1, stream.next()


def mixing(width, height, mixup_alpha, cutmix_alpha, probability, switch_probability, seed):
    """0, 1 or 2 for none, MixUp, CutMix; lambda; the box."""
    with drawing_from(RandomStream(seed)):
        policy = mixup.Mixup(mixup_alpha, cutmix_alpha, prob=probability, switch_prob=switch_probability)
        share, cuts = policy._params_per_batch()
        if share == 1:
            return 0, 1, 0, 0, 0, 0
        if not cuts:
            return 1, share, 0, 0, 0, 0
        (top, bottom, left, right), share = mixup.cutmix_bbox_and_lam((2, 3, height, width), share)
        return 2, share, left, top, right - left, bottom - top


NUMBERS = {"resized_crop": resized_crop, "erasure": erasure, "mixing": mixing}
