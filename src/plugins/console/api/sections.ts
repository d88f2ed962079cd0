import { z } from 'zod';
import type { PageSection } from '../../../core/contracts/console.ts';
import { freeOf } from '../../../core/host/history/answer-text.ts';
import { Pace } from '../../../core/host/history/pace.ts';
import { PAGE } from '../../../core/host/logging/redact.ts';
import { status, time } from './endpoint.ts';

const MOST_SECTIONS = 50;
/** Rows, facts and points of one section. */
const MOST_ROWS = 1_000;
/** Spans of a waterfall. */
const MOST_SPANS = 2_000;
/** Marks of one span. */
const MOST_MARKS = 100;
/** Rows of a section that are redacted at once, which takes some milliseconds. */
const SLICE = 50;

const cell = z.union([z.string(), z.number(), z.boolean(), z.null()]);
const linked = {
  status: status.exactOptional(),
  actor: z.string().exactOptional(),
  seq: z.int().exactOptional(),
  page: z
    .object({
      name: z.string(),
      title: z.string().exactOptional(),
      inputs: z.record(z.string(), z.string()).exactOptional(),
    })
    .exactOptional(),
};
const title = z.string().exactOptional();
const facts = z.record(z.string(), cell).exactOptional();
const format = z.enum(['text', 'number', 'time', 'instant', 'duration', 'bytes']).exactOptional();

export const section = z.discriminatedUnion('kind', [
  z.object({
    kind: z.literal('facts'),
    title,
    facts: z
      .array(
        z.object({
          label: z.string(),
          value: cell,
          format,
          since: time.exactOptional(),
          until: time.exactOptional(),
          ...linked,
        }),
      )
      .max(MOST_ROWS),
  }),
  z.object({
    kind: z.literal('table'),
    title,
    columns: z.array(z.object({ name: z.string(), title: z.string(), format })).max(30),
    rows: z.array(z.object({ cells: z.record(z.string(), cell), facts, ...linked })).max(MOST_ROWS),
  }),
  z.object({ kind: z.literal('text'), title, text: z.string().max(50_000) }),
  z.object({
    kind: z.literal('chart'),
    title,
    unit: z.string().exactOptional(),
    form: z.enum(['lines', 'bars']).exactOptional(),
    series: z
      .array(
        z.object({
          name: z.string(),
          status: status.exactOptional(),
          points: z.array(z.tuple([time, z.number()])).max(MOST_ROWS),
        }),
      )
      .max(20),
  }),
  z.object({
    kind: z.literal('bars'),
    title,
    unit: z.string().exactOptional(),
    bars: z.array(z.object({ name: z.string(), value: z.number(), ...linked })).max(MOST_ROWS),
  }),
  z.object({
    kind: z.literal('changes'),
    title,
    changes: z
      .array(z.object({ path: z.string(), from: z.unknown().optional(), to: z.unknown().optional() }))
      .max(MOST_ROWS),
  }),
  z.object({
    kind: z.literal('waterfall'),
    title,
    spans: z
      .array(
        z.object({
          id: z.string(),
          parent: z.string().exactOptional(),
          name: z.string(),
          by: z.string(),
          start: time,
          duration: z.number().meta({ description: 'milliseconds' }),
          status: status.exactOptional(),
          marks: z
            .array(z.object({ time, text: z.string(), status: status.exactOptional() }))
            .max(MOST_MARKS)
            .exactOptional(),
          facts,
        }),
      )
      .max(MOST_SPANS),
  }),
]);
export type Section = z.output<typeof section>;

/**
 * As much of the sections as a page may have, redacted. Long ones are worked on in slices, so that what else the instance
 * does goes on.
 *
 * @param signal ends it
 */
export async function boundedSections(
  sections: readonly PageSection[],
  signal: AbortSignal,
): Promise<Section[]> {
  const pace = new Pace(signal);
  const found: Section[] = [];
  for (const one of sections.slice(0, MOST_SECTIONS).map(cutSection)) {
    let whole: Section | undefined;
    for (const part of partsOf(one)) {
      await pace.next();
      const next = section.parse(freeOf(part, PAGE));
      if (whole) append(whole, next);
      else whole = next;
    }
    if (whole) found.push(whole);
  }
  return found;
}

/** A long section as several short ones. */
function partsOf(one: PageSection): PageSection[] {
  switch (one.kind) {
    case 'facts':
      return slices(one.facts).map((facts) => ({ ...one, facts }));
    case 'table':
      return slices(one.rows).map((rows) => ({ ...one, rows }));
    case 'bars':
      return slices(one.bars).map((bars) => ({ ...one, bars }));
    case 'changes':
      return slices(one.changes).map((changes) => ({ ...one, changes }));
    case 'waterfall':
      return slices(one.spans).map((spans) => ({ ...one, spans }));
    case 'text':
    case 'chart':
      return [one];
  }
}

/** At least one, which may be empty. */
function slices<T>(items: readonly T[]): T[][] {
  const count = Math.max(1, Math.ceil(items.length / SLICE));
  return Array.from({ length: count }, (_, index) => items.slice(index * SLICE, (index + 1) * SLICE));
}

function append(whole: Section, part: Section): void {
  if (whole.kind === 'facts' && part.kind === 'facts') whole.facts.push(...part.facts);
  else if (whole.kind === 'table' && part.kind === 'table') whole.rows.push(...part.rows);
  else if (whole.kind === 'bars' && part.kind === 'bars') whole.bars.push(...part.bars);
  else if (whole.kind === 'changes' && part.kind === 'changes') whole.changes.push(...part.changes);
  else if (whole.kind === 'waterfall' && part.kind === 'waterfall') whole.spans.push(...part.spans);
}

function cutSection(one: PageSection): PageSection {
  switch (one.kind) {
    case 'facts':
      return { ...one, facts: one.facts.slice(0, MOST_ROWS) };
    case 'table':
      return { ...one, rows: one.rows.slice(0, MOST_ROWS) };
    case 'text':
      return { ...one, text: one.text.slice(0, 50_000) };
    case 'chart':
      return {
        ...one,
        series: one.series.slice(0, 20).map(({ points, ...each }) => ({
          ...each,
          points: points.filter((point) => point.every(Number.isFinite)).slice(-MOST_ROWS),
        })),
      };
    case 'bars':
      return { ...one, bars: one.bars.filter(({ value }) => Number.isFinite(value)).slice(0, MOST_ROWS) };
    case 'changes':
      return { ...one, changes: one.changes.slice(0, MOST_ROWS) };
    case 'waterfall':
      return {
        ...one,
        spans: one.spans
          .slice(0, MOST_SPANS)
          .map((span) => (span.marks ? { ...span, marks: span.marks.slice(0, MOST_MARKS) } : span)),
      };
  }
}
