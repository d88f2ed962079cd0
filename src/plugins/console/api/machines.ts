import { z } from 'zod';
import { ConsoleError } from '../errors.ts';
import { type GraphState, machineGraph } from '../statechart/graph.ts';
import { get } from './endpoint.ts';

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
  summary: 'The machine of a type of actor as a statechart, with a drawing where it can be laid out',
  params: z.strictObject({ type: z.string().regex(/^[\w.-]{1,128}$/, 'a type of actor') }),
  answer: z.object({
    name: z.string(),
    type: z.string(),
    version: z.int(),
    states: z.array(state),
    transitions: z.array(transition),
    drawing: drawing.optional(),
  }),
  run: async ({ params: { type } }, { source, drawingOf }) => {
    const actor = (await source.actors()).find((one) => one.type === type);
    if (!actor) throw new ConsoleError('HF_CONSOLE_MISSING', { what: 'machine of actors', name: type });
    const graph = machineGraph(actor.machine);
    const { data: made } = drawing.safeParse(await drawingOf(type, graph));
    return {
      ...{ name: graph.name, type, version: actor.version },
      states: [...graph.states],
      transitions: graph.transitions.map((one) => ({ ...one, effects: [...one.effects] })),
      ...(made && { drawing: made }),
    };
  },
});
