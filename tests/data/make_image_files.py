# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/image_files: PNG and WebP files of every kind, and in expected.txt what Pillow's convert("RGB") makes of each:

    .deps/python/bin/python tests/data/make_image_files.py

PNG is encoded here, for Pillow writes neither interlaced files nor every depth; WebP by Pillow (written with 13.0, libwebp 1.6)."""
import hashlib
import io
import pathlib
import random
import struct
import warnings
import zlib

from PIL import Image

FOLDER = pathlib.Path(__file__).parent / "image_files"
WIDTH, HEIGHT = 33, 19
CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
DEPTHS = {0: (1, 2, 4, 8, 16), 2: (8, 16), 3: (1, 2, 4, 8), 4: (8, 16), 6: (8, 16)}
ADAM7 = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def paeth(a, b, c):
    estimate = a + b - c
    return min((abs(estimate - value), place, value) for place, value in enumerate((a, b, c)))[2]


def filtered(row, before, step, kind):
    out = bytearray([kind])
    for i, value in enumerate(row):
        a = row[i - step] if i >= step else 0
        b, c = before[i], before[i - step] if i >= step else 0
        out.append((value - (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]) & 0xFF)
    return bytes(out)


def png(values, width, height, kind, depth, interlaced=False, chunks=b""):
    """`values[y][x]`: one tuple of samples for each pixel."""
    step = max(1, CHANNELS[kind] * depth // 8)
    data = b""
    for left, top, across, down in ADAM7 if interlaced else ((0, 0, 1, 1),):
        before = None
        for number, y in enumerate(range(top, height, down)):
            samples = [sample for x in range(left, width, across) for sample in values[y][x]]
            if not samples:
                continue
            bits = "".join(format(sample, f"0{depth}b") for sample in samples)
            bits += "0" * (-len(bits) % 8)
            row = int(bits, 2).to_bytes(len(bits) // 8, "big")
            data += filtered(row, before or bytes(len(row)), step, (number + left) % 5)
            before = row
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunks + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def picture(kind, depth, width=WIDTH, height=HEIGHT, most=None):
    noise = random.Random(f"{kind} {depth} {width} {height}")
    most = most or (1 << depth) - 1
    return [[tuple((x * (c + 3) * most // 90 + y * most // 40 + noise.randrange(most // 4 + 1)) % (most + 1) for c in range(CHANNELS[kind]))
             for x in range(width)] for y in range(height)]


def png_files():
    colours = random.Random(1)
    for kind, depths in DEPTHS.items():
        for depth in depths:
            palette = chunk(b"PLTE", colours.randbytes(3 << depth)) if kind == 3 else b""
            for interlaced in (False, True):
                yield f"kind{kind}-{depth}{'-interlaced' if interlaced else ''}.png", png(
                    picture(kind, depth), WIDTH, HEIGHT, kind, depth, interlaced, palette)
    for width, height in ((1, 1), (3, 2), (5, 1), (1, 9)):
        yield f"interlaced-{width}x{height}.png", png(picture(2, 8, width, height), width, height, 2, 8, True)
    yield "grey16-dark.png", png(picture(0, 16, most=400), WIDTH, HEIGHT, 0, 16)
    short = chunk(b"PLTE", colours.randbytes(3 * 100))
    yield "short-palette.png", png(picture(3, 8), WIDTH, HEIGHT, 3, 8, False, short)
    yield "palette-with-alpha.png", png(picture(3, 4), WIDTH, HEIGHT, 3, 4, False,
                                        chunk(b"PLTE", colours.randbytes(48)) + chunk(b"tRNS", bytes(range(0, 160, 16))))
    yield "grey-with-alpha.png", png(picture(0, 8), WIDTH, HEIGHT, 0, 8, False, chunk(b"tRNS", b"\0\7"))
    yield "colour-with-alpha.png", png(picture(2, 8), WIDTH, HEIGHT, 2, 8, False, chunk(b"tRNS", b"\0\1\0\2\0\3"))
    beside = chunk(b"gAMA", struct.pack(">I", 100000)) + chunk(b"sRGB", b"\0") + chunk(b"iCCP", b"x\0\0" + zlib.compress(bytes(5000)))
    beside += chunk(b"zTXt", b"t\0\0" + zlib.compress(bytes(1 << 19), 9))
    yield "much-beside.png", png(picture(2, 8), WIDTH, HEIGHT, 2, 8, False, beside)


def webp_files():
    noise = random.Random(2)
    colours = bytes(value for row in picture(2, 8) for pixel in row for value in pixel)
    image = Image.frombytes("RGB", (WIDTH, HEIGHT), colours)
    smooth = image.resize((71, 53), Image.Resampling.BICUBIC)
    alpha = smooth.copy()
    alpha.putalpha(Image.frombytes("L", smooth.size, noise.randbytes(71 * 53)))

    def saved(one, **options):
        out = io.BytesIO()
        one.save(out, "WEBP", **options)
        return out.getvalue()

    yield "lossy.webp", saved(smooth, quality=80)
    yield "lossy-rough.webp", saved(image, quality=20)
    yield "lossy-alpha.webp", saved(alpha, quality=80)
    yield "lossless.webp", saved(image, lossless=True)
    yield "lossless-alpha.webp", saved(alpha.crop((3, 5, 30, 40)), lossless=True, exact=True)
    yield "one-pixel.webp", saved(image.crop((4, 4, 5, 5)), lossless=True)
    yield "animation.webp", saved(smooth, save_all=True, append_images=[smooth.rotate(90)], duration=100, quality=80)


def main():
    warnings.simplefilter("ignore")  # of palettes with transparency
    FOLDER.mkdir(exist_ok=True)
    lines = []
    for name, data in (*png_files(), *webp_files()):
        (FOLDER / name).write_bytes(data)
        image = Image.open(io.BytesIO(data)).convert("RGB")
        lines.append(f"{name} {image.width} {image.height} {hashlib.sha256(image.tobytes()).hexdigest()}\n")
    (FOLDER / "expected.txt").write_text("".join(lines))


main()
