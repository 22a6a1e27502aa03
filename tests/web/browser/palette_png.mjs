// SPDX-License-Identifier: Apache-2.0
// PNG as a browser takes pictures -> PNG with a palette of at most 256 colours: a third of the size, and pages have few colours.
import { deflateSync, inflateSync } from "node:zlib";

const kSignature = Buffer.from("89504e470d0a1a0a", "hex");

const kCrc = Array.from({ length: 256 }, (_, value) => {
  for (let bit = 0; bit < 8; ++bit) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});
const crc32 = (bytes) => (bytes.reduce((crc, byte) => kCrc[(crc ^ byte) & 255] ^ (crc >>> 8), -1) ^ -1) >>> 0;

/** Chunks of a PNG as [type, data]. */
function* chunksOf(png) {
  for (let at = kSignature.length; at < png.length; ) {
    const size = png.readUInt32BE(at);
    yield [png.toString("latin1", at + 4, at + 8), png.subarray(at + 8, at + 8 + size)];
    at += size + 12;
  }
}
function chunk(type, data) {
  const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const frame = Buffer.alloc(8);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(crc32(body), 4);
  return Buffer.concat([frame.subarray(0, 4), body, frame.subarray(4)]);
}

/** Pixels of an 8-bit RGB or RGBA picture, without alpha: 3 bytes each. */
function decode(png) {
  const parts = [...chunksOf(png)];
  const header = parts.find(([type]) => type === "IHDR")[1];
  const [width, height, depth, colour] = [header.readUInt32BE(0), header.readUInt32BE(4), header[8], header[9]];
  const step = { 2: 3, 6: 4 }[colour];
  if (depth !== 8 || !step || header[12] !== 0) throw new Error("expected a PNG of 8 bits, RGB or RGBA, not interlaced");
  const data = inflateSync(Buffer.concat(parts.filter(([type]) => type === "IDAT").map(([, part]) => part)));
  const line = width * step;
  const pixels = Buffer.alloc(width * height * 3);
  let above = Buffer.alloc(line);
  for (let y = 0; y < height; ++y) {
    const filter = data[y * (line + 1)];
    const row = data.subarray(y * (line + 1) + 1, (y + 1) * (line + 1));
    for (let i = 0; i < line; ++i) {
      const [a, b, c] = [i < step ? 0 : row[i - step], above[i], i < step ? 0 : above[i - step]];
      row[i] += [0, a, b, (a + b) >> 1, paeth(a, b, c)][filter];
    }
    for (let x = 0; x < width; ++x) row.copy(pixels, (y * width + x) * 3, x * step, x * step + 3);
    above = row;
  }
  return { width, height, pixels };
}
function paeth(a, b, c) {
  const [pa, pb, pc] = [Math.abs(b - c), Math.abs(a - c), Math.abs(a + b - 2 * c)];
  return pa <= pb && pa <= pc ? a : pb <= pc ? b : c;
}

const farness = (one, other) =>
  [16, 8, 0].reduce((sum, shift) => sum + (((one >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);

/** At most 256 of these colours: the most frequent, then whatever is seen most and farthest from all that are taken. */
function paletteOf(seen) {
  const colours = [...seen].sort((a, b) => b[1] - a[1]);
  if (colours.length <= 256) return colours.map(([colour]) => colour);
  const palette = colours.splice(0, 64).map(([colour]) => colour);
  const far = colours.map(([colour]) => Math.min(...palette.map((other) => farness(colour, other))));
  while (palette.length < 256) {
    let best = 0;
    far.forEach((least, at) => {
      if (least * Math.sqrt(colours[at][1]) > far[best] * Math.sqrt(colours[best][1])) best = at;
    });
    const taken = colours[best][0];
    palette.push(taken);
    far.forEach((least, at) => (far[at] = Math.min(least, farness(colours[at][0], taken))));
  }
  return palette;
}

/** The picture with 256 of its colours; others become the nearest of them. */
export function withPalette(png) {
  const { width, height, pixels } = decode(png);
  const seen = new Map();
  const colourAt = (i) => (pixels[3 * i] << 16) | (pixels[3 * i + 1] << 8) | pixels[3 * i + 2];
  for (let i = 0; i < width * height; ++i) seen.set(colourAt(i), (seen.get(colourAt(i)) ?? 0) + 1);
  const palette = paletteOf(seen);
  const place = new Map(palette.map((colour, at) => [colour, at]));
  const nearest = (colour) => {
    let [best, least] = [0, Infinity];
    palette.forEach((other, at) => {
      const far = farness(colour, other);
      if (far < least) [best, least] = [at, far];
    });
    place.set(colour, best);
    return best;
  };
  const rows = Buffer.alloc(height * (width + 1));
  for (let y = 0; y < height; ++y)
    for (let x = 0; x < width; ++x) {
      const colour = colourAt(y * width + x);
      rows[y * (width + 1) + 1 + x] = place.get(colour) ?? nearest(colour);
    }
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.from(palette.flatMap((colour) => [colour >> 16, (colour >> 8) & 255, colour & 255]));
  return Buffer.concat([
    kSignature,
    chunk("IHDR", header),
    chunk("PLTE", colours),
    chunk("IDAT", deflateSync(rows, { level: 9 })),
    chunk("IEND", Buffer.alloc(0)),
  ]);
}
