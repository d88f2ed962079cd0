import { duration } from '../text.tsx';
import type { Bars, LanesLayout } from './lanes-layout.ts';

/** Pixels of one lane, of the axis above the lanes, and of the names beside them. */
export const LANE = 26;
export const AXIS = 20;
export const NAMES = 190;
const MARGIN = 8;
/** More arrows than this cannot be told apart: then only those of the shown record are drawn. */
const MOST_ARROWS = 400;
/** More points than this are drawn as small squares, which costs a tenth of circles. */
const MOST_CIRCLES = 1_500;
/** More timers than this are drawn as thin lines: dashes cost twenty times as much. */
const MOST_DASHES = 200;

/** Which part of the lanes is seen. */
export interface LanesView {
  readonly zoom: number;
  /** The place at the left edge, 0 to 1. */
  readonly shift: number;
  /** Pixels of lanes above the upper edge. */
  readonly top: number;
  readonly width: number;
  readonly height: number;
  /** The record that is shown. */
  readonly seq: number | undefined;
}

/** Where a place lies, pixels. */
export function pixelOf(place: number, { zoom, shift, width }: LanesView): number {
  return NAMES + MARGIN + (place - shift) * zoom * lanesWidth(width);
}

/** The width of the lanes when all of them is seen, pixels. */
export const lanesWidth = (width: number): number => Math.max(1, width - NAMES - 2 * MARGIN - 8);

/** Draws the part that is seen. @returns whether arrows were left out, because they are too many */
export function paintLanes(
  context: CanvasRenderingContext2D,
  layout: LanesLayout,
  view: LanesView,
  colour: (name: string) => string,
): boolean {
  const { actors } = layout;
  const { width, height, top } = view;
  const first = Math.max(0, Math.floor(top / LANE) - 1);
  const last = Math.min(actors.length - 1, Math.ceil((top + height) / LANE));
  const yOf = (lane: number): number => AXIS + lane * LANE + LANE / 2 - top;
  context.clearRect(0, 0, width, height);
  context.font = '12px system-ui, sans-serif';
  context.textBaseline = 'middle';
  context.save();
  context.beginPath();
  context.rect(NAMES, AXIS, width - NAMES, height - AXIS);
  context.clip();
  context.fillStyle = colour('line');
  for (let lane = first; lane <= last; lane += 1) context.fillRect(NAMES, yOf(lane), width, 1);
  const frame: Frame = { context, view, yOf, colour, first, last };
  paintBars(frame, layout.bars);
  paintTimers(frame, layout.timers);
  const isCrowded = paintArrows(frame, layout);
  paintDots(frame, layout);
  context.restore();
  paintNames(frame, layout);
  return isCrowded;
}

interface Frame {
  readonly context: CanvasRenderingContext2D;
  readonly view: LanesView;
  readonly yOf: (lane: number) => number;
  readonly colour: (name: string) => string;
  /** The lanes that are seen. */
  readonly first: number;
  readonly last: number;
}

/** Calls `draw` for the bars that are seen; what would cover the same pixels is drawn once. */
function eachBar(
  { view, first, last }: Frame,
  { fromX, toX, lane, failed }: Bars,
  wanted: 0 | 1 | undefined,
  draw: (from: number, to: number, lane: number) => void,
): void {
  const covered = new Int32Array(last + 1);
  for (let index = 0; index < fromX.length; index += 1) {
    const on = lane[index] ?? 0;
    if (on < first || on > last || (wanted !== undefined && failed[index] !== wanted)) continue;
    const from = pixelOf(fromX[index] ?? 0, view);
    const to = Math.max(from + 2, pixelOf(toX[index] ?? 0, view));
    if (to < NAMES || from > view.width || to <= (covered[on] ?? 0)) continue;
    covered[on] = Math.floor(to);
    draw(from, to, on);
  }
}

function paintBars(frame: Frame, bars: Bars): void {
  const { context, colour, yOf } = frame;
  for (const failed of [0, 1] as const) {
    context.fillStyle = colour(failed ? 'failing' : 'span');
    eachBar(frame, bars, failed, (from, to, lane) => context.fillRect(from, yOf(lane) - 5, to - from, 10));
  }
}

function paintTimers(frame: Frame, timers: Bars): void {
  const { context, colour, yOf } = frame;
  const lines: (readonly [from: number, to: number, y: number])[] = [];
  eachBar(frame, timers, undefined, (from, to, lane) => lines.push([from, to, yOf(lane) + 8]));
  context.fillStyle = colour('quiet');
  if (lines.length > MOST_DASHES) {
    for (const [from, to, y] of lines) context.fillRect(from, y, to - from, 1);
    return;
  }
  context.setLineDash([4, 3]);
  context.strokeStyle = colour('quiet');
  context.beginPath();
  for (const [from, to, y] of lines) {
    context.moveTo(from, y);
    context.lineTo(to, y);
  }
  context.stroke();
  context.setLineDash([]);
}

/** @returns whether some were left out */
function paintArrows({ context, view, yOf, colour, first, last }: Frame, layout: LanesLayout): boolean {
  const { fromX, fromLane, toX, toLane, from, to } = layout.arrows;
  const seen: number[] = [];
  for (let index = 0; index < fromX.length; index += 1) {
    const [upper, lower] = [fromLane[index] ?? 0, toLane[index] ?? 0];
    if (Math.max(upper, lower) < first || Math.min(upper, lower) > last) continue;
    const [left, right] = [pixelOf(fromX[index] ?? 0, view), pixelOf(toX[index] ?? 0, view)];
    if (right >= NAMES && left <= view.width) seen.push(index);
  }
  const isCrowded = seen.length > MOST_ARROWS;
  const shown = isCrowded
    ? seen.filter((index) =>
        [from[index], to[index]].some((record) => layout.seqs[record ?? -1] === view.seq),
      )
    : seen;
  context.strokeStyle = colour('quiet');
  context.fillStyle = colour('quiet');
  const [lines, heads] = [new Path2D(), new Path2D()];
  for (const index of shown) {
    const [startX, startY] = [pixelOf(fromX[index] ?? 0, view), yOf(fromLane[index] ?? 0)];
    const [endX, endY] = [pixelOf(toX[index] ?? 0, view), yOf(toLane[index] ?? 0)];
    const [down, middle] = [endY > startY ? 1 : -1, (startY + endY) / 2];
    lines.moveTo(startX, startY + 4 * down);
    lines.bezierCurveTo(startX, middle, endX, middle, endX, endY - 5 * down);
    heads.moveTo(endX, endY - 4 * down);
    heads.lineTo(endX - 3, endY - 9 * down);
    heads.lineTo(endX + 3, endY - 9 * down);
  }
  context.stroke(lines);
  context.fill(heads);
  return isCrowded;
}

function paintDots({ context, view, yOf, colour, first, last }: Frame, { dots, seqs }: LanesLayout): void {
  const { x, lane, failed } = dots;
  const seen: [place: number, lane: number][][] = [[], []];
  const covered = [new Int32Array(last + 1), new Int32Array(last + 1)];
  let shown: readonly [x: number, y: number, failed: number] | undefined;
  for (let index = 0; index < x.length; index += 1) {
    const [on, which] = [lane[index] ?? 0, failed[index] ?? 0];
    if (on < first || on > last) continue;
    const left = pixelOf(x[index] ?? 0, view);
    if (left < NAMES - MARGIN || left > view.width + MARGIN) continue;
    if (seqs[index] === view.seq) shown = [left, yOf(on), which];
    const pixel = Math.round(left);
    const before = covered[which];
    if (!before || before[on] === pixel) continue;
    before[on] = pixel;
    seen[which]?.push([left, on]);
  }
  const isCrowded = seen.flat().length > MOST_CIRCLES;
  for (const [which, points] of seen.entries()) {
    context.fillStyle = colour(which ? 'failing' : 'accent');
    if (isCrowded) {
      for (const [left, on] of points) context.fillRect(left - 1.5, yOf(on) - 3, 3, 6);
      continue;
    }
    context.beginPath();
    for (const [left, on] of points) {
      context.moveTo(left + 3.5, yOf(on));
      context.arc(left, yOf(on), 3.5, 0, 7);
    }
    context.fill();
  }
  if (!shown) return;
  context.fillStyle = colour(shown[2] ? 'failing' : 'accent');
  context.strokeStyle = colour('text');
  context.lineWidth = 2;
  context.beginPath();
  context.arc(shown[0], shown[1], 6, 0, 7);
  context.fill();
  context.stroke();
  context.lineWidth = 1;
}

function paintNames({ context, view, yOf, colour, first, last }: Frame, layout: LanesLayout): void {
  context.fillStyle = colour('quiet');
  let free = NAMES;
  for (const { x, ms } of layout.gaps) {
    const left = pixelOf(x, view) + 6;
    if (left < free || left > view.width) continue;
    const text = `${duration(ms)} later`;
    context.fillText(text, left, AXIS / 2);
    free = left + text.length * 7 + 8;
  }
  context.fillStyle = colour('text');
  for (let lane = first; lane <= last; lane += 1) {
    const y = yOf(lane);
    if (y > AXIS) context.fillText(layout.actors[lane] ?? '', 4, y, NAMES - 12);
  }
}
