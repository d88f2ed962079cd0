import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { z } from 'zod';
import { isObject } from '../../../core/kernel/json.ts';
import { ConsoleError } from '../errors.ts';
import { type GraphState, graphDigest, machineGraph } from '../statechart/graph.ts';
import { get } from './endpoint.ts';

/** Where the build leaves the drawings, from source and from the package. */
const DRAWINGS = fileURLToPath(new URL('../../../../dist/console/machines/', import.meta.url));

const state: z.ZodType<GraphState> = z.lazy(() =>
  z.object({
    id: z.string(),
    name: z.string(),
    kind: z.enum(['atomic', 'compound', 'parallel', 'final', 'history']),
    initial: z.string().exactOptional(),
    states: z.array(state),
  }),
);

const transition = z.object({
  from: z.string().meta({ description: 'empty for what holds in each state' }),
  to: z.string(),
  event: z.string().meta({ description: 'empty where none is needed' }),
  guard: z.string().exactOptional(),
  delay: z.string().exactOptional(),
  effects: z.array(z.string()),
});

const point = z.object({ x: z.number(), y: z.number() });

const drawing = z.object({
  width: z.number(),
  height: z.number(),
  states: z.array(
    point.extend({
      id: z.string(),
      name: z.string(),
      kind: z.string(),
      width: z.number(),
      height: z.number(),
      isInitial: z.boolean(),
    }),
  ),
  transitions: z.array(
    z.object({
      from: z.string(),
      to: z.string(),
      points: z.array(point),
      label: point.extend({ lines: z.array(z.string()) }),
    }),
  ),
});

export const showMachine = get({
  path: '/api/machines/{type}',
  summary: 'The machine of a type of actor as a statechart, with a drawing where the build made one',
  params: z.strictObject({ type: z.string().regex(/^[\w.-]{1,128}$/, 'a type of actor') }),
  answer: z.object({
    name: z.string(),
    type: z.string(),
    version: z.int(),
    states: z.array(state),
    transitions: z.array(transition),
    drawing: drawing.optional(),
  }),
  run: async ({ params: { type } }, { source }) => {
    const actor = (await source.actors()).find((one) => one.type === type);
    if (!actor) throw new ConsoleError('HF_CONSOLE_MISSING', { what: 'machine of actors', name: type });
    const graph = machineGraph(actor.machine);
    const made = await drawingOf(type, graphDigest(graph));
    return {
      ...{ name: graph.name, type, version: actor.version },
      states: [...graph.states],
      transitions: graph.transitions.map((one) => ({ ...one, effects: [...one.effects] })),
      ...(made && { drawing: made }),
    };
  },
});

/** The drawing that the build made, if it is of this very machine. */
async function drawingOf(type: string, digest: string): Promise<z.output<typeof drawing> | undefined> {
  try {
    const made: unknown = JSON.parse(await readFile(`${DRAWINGS}${type}.json`, 'utf8'));
    return isObject(made) && made.of === digest ? drawing.safeParse(made.drawing).data : undefined;
  } catch {
    return undefined; // a plugin of somebody's own, or a checkout whose pages are not built
  }
}
