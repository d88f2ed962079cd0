// The part of PNG that pictures of pages need: reads what a browser writes, and writes it with a palette of 256 colours, which
// takes less than half of the bytes. https://www.w3.org/TR/png-3/
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]);
const MOST_COLOURS = 256;
const MOST_FREQUENT = 160;
/** Bytes of a pixel by the type of colour: red, green and blue; an index; the first with transparency. */
const CHANNELS: Readonly<Record<number, number>> = { 2: 3, 3: 1, 6: 4 };

/** Colours as `0xRRGGBB`, row by row. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint32Array;
}

/** @throws it is no PNG of 8 bits a channel without interlacing */
export function readPng(bytes: Buffer): Picture {
  if (!bytes.subarray(0, 8).equals(SIGNATURE)) throw new Error('it is no PNG');
  const chunks = new Map<string, Buffer[]>();
  for (let at = 8; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const type = bytes.toString('latin1', at + 4, at + 8);
    chunks.set(type, [...(chunks.get(type) ?? []), bytes.subarray(at + 8, at + 8 + length)]);
    at += length + 12;
  }
  const [header = Buffer.alloc(13)] = chunks.get('IHDR') ?? [];
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const channels = CHANNELS[header[9] ?? 0];
  if (header[8] !== 8 || channels === undefined || header[12] !== 0) throw new Error('a PNG of another kind');
  const rows = unfiltered(inflateSync(Buffer.concat(chunks.get('IDAT') ?? [])), width * channels, channels);
  const palette = chunks.get('PLTE')?.[0];
  const pixels = new Uint32Array(width * height);
  for (let pixel = 0; pixel < pixels.length; pixel += 1) {
    const at = pixel * channels;
    pixels[pixel] = palette ? palette.readUIntBE((rows[at] ?? 0) * 3, 3) : rows.readUIntBE(at, 3);
  }
  return { width, height, pixels };
}

/** Undoes the filter of each row, which its first byte names. */
function unfiltered(data: Buffer, rowLength: number, channels: number): Buffer {
  const rows = Math.floor(data.length / (rowLength + 1));
  const out = Buffer.alloc(rows * rowLength);
  for (let row = 0; row < rows; row += 1) {
    const filter = data[row * (rowLength + 1)] ?? 0;
    for (let column = 0; column < rowLength; column += 1) {
      const at = row * rowLength + column;
      const left = column >= channels ? (out[at - channels] ?? 0) : 0;
      const up = row > 0 ? (out[at - rowLength] ?? 0) : 0;
      const corner = row > 0 && column >= channels ? (out[at - rowLength - channels] ?? 0) : 0;
      const predicted = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter] ?? 0;
      out[at] = (data[row * (rowLength + 1) + 1 + column] ?? 0) + predicted;
    }
  }
  return out;
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const [byLeft, byUp, byCorner] = [Math.abs(guess - left), Math.abs(guess - up), Math.abs(guess - corner)];
  if (byLeft <= byUp && byLeft <= byCorner) return left;
  return byUp <= byCorner ? up : corner;
}

/** @returns the picture with 256 of its colours; each other colour becomes the nearest of them */
export function indexedPng({ width, height, pixels }: Picture): Buffer {
  const counts = new Map<number, number>();
  for (const colour of pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const byCount = [...counts].sort(([first, a], [second, b]) => b - a || first - second);
  const palette = paletteOf(byCount.map(([colour]) => colour));
  const indices = new Map(palette.map((colour, index) => [colour, index]));
  for (const [colour] of byCount) if (!indices.has(colour)) indices.set(colour, nearest(colour, palette));
  const rows = Buffer.alloc(height * (width + 1)); // each begins with a 0: no filter
  for (let row = 0; row < height; row += 1)
    for (let column = 0; column < width; column += 1)
      rows[row * (width + 1) + 1 + column] = indices.get(pixels[row * width + column] ?? 0) ?? 0;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([8, 3, 0, 0, 0], 8);
  const colours = Buffer.alloc(palette.length * 3);
  for (const [index, colour] of palette.entries()) colours.writeUIntBE(colour, index * 3, 3);
  return Buffer.concat([
    SIGNATURE,
    chunk('IHDR', header),
    chunk('PLTE', colours),
    chunk('IDAT', deflateSync(rows, { level: 9, memLevel: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

/** The most frequent colours, and those that are farthest from them: a red mark is small, and must stay red. */
function paletteOf(colours: readonly number[]): number[] {
  const palette = colours.slice(0, MOST_FREQUENT);
  const left = colours.slice(MOST_FREQUENT);
  const far = left.map((colour) => distance(colour, palette[nearest(colour, palette)] ?? 0));
  while (palette.length < MOST_COLOURS) {
    const farthest = far.indexOf(Math.max(...far));
    const colour = left[farthest];
    if (colour === undefined) break;
    palette.push(colour);
    for (const [index, other] of left.entries())
      far[index] = Math.min(far[index] ?? 0, distance(other, colour));
  }
  return palette;
}

function chunk(type: string, data: Buffer): Buffer {
  const out = Buffer.alloc(data.length + 12);
  out.writeUInt32BE(data.length, 0);
  out.write(type, 4, 'latin1');
  data.copy(out, 8);
  out.writeUInt32BE(crc32(out.subarray(4, data.length + 8)), data.length + 8);
  return out;
}

function nearest(colour: number, palette: readonly number[]): number {
  let best = 0;
  for (const index of palette.keys())
    if (distance(colour, palette[index] ?? 0) < distance(colour, palette[best] ?? 0)) best = index;
  return best;
}

/** How far two colours are from each other, 0 to 255: the mean of their channels. */
function distance(one: number, other: number): number {
  const by = (shift: number) => Math.abs(((one >> shift) & 255) - ((other >> shift) & 255));
  return (by(16) + by(8) + by(0)) / 3;
}

/**
 * How much two pictures of one size differ when one looks from afar: each is made so small that letters are grey, because
 * another machine has other fonts.
 *
 * @param side of the squares of which each becomes one colour, pixels
 * @returns 0 where they are the same, 255 between black and white
 */
export function difference(one: Picture, other: Picture, side = 40): number {
  const [first, second] = [shrunk(one, side), shrunk(other, side)];
  const sum = first.reduce((total, value, index) => total + Math.abs(value - (second[index] ?? 0)), 0);
  return sum / Math.max(1, first.length);
}

/** @returns the share of squares that are not all of the colour that most of the picture has: a page that stays empty has few */
export function inkOf(picture: Picture, side = 40): number {
  const counts = new Map<number, number>();
  for (const colour of picture.pixels) counts.set(colour, (counts.get(colour) ?? 0) + 1);
  const [[ground] = [0]] = [...counts].sort(([, a], [, b]) => b - a);
  const means = shrunk(picture, side);
  const squares = means.length / 3;
  let inked = 0;
  for (let square = 0; square < squares; square += 1)
    if (
      [0, 1, 2].some(
        (channel) => Math.abs((means[square * 3 + channel] ?? 0) - ((ground >> (8 * channel)) & 255)) > 2,
      )
    )
      inked += 1;
  return inked / squares;
}

/** The mean of each channel of each square. */
function shrunk({ width, height, pixels }: Picture, side: number): number[] {
  const columns = Math.ceil(width / side);
  const sums = new Float64Array(columns * Math.ceil(height / side) * 3);
  const counts = new Float64Array(sums.length);
  for (const [index, colour] of pixels.entries()) {
    const square =
      Math.floor(Math.floor(index / width) / side) * columns + Math.floor((index % width) / side);
    for (const channel of [0, 1, 2]) {
      const at = square * 3 + channel;
      sums[at] = (sums[at] ?? 0) + ((colour >> (8 * channel)) & 255);
      counts[at] = (counts[at] ?? 0) + 1;
    }
  }
  return Array.from(sums, (sum, at) => sum / (counts[at] || 1));
}
