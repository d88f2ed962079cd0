import { z } from 'zod';
import { type ActionField, type ConsoleAction, consoleActions } from '../../../core/contracts/console.ts';
import { parseDuration } from '../../../core/host/duration.ts';
import { freeOf, textOf } from '../../../core/host/history/answer-text.ts';
import { askInstance } from '../../../core/host/operations/control-client.ts';
import { ACCESS_KEY, accessActor } from '../access/actor.ts';
import { ConsoleError } from '../errors.ts';
import { contributedTo, post } from './endpoint.ts';

/** An operation may take so long, milliseconds: as long as its command waits. */
const DEADLINE_MS = 60_000;

export const act = post({
  path: '/api/actions/{name}',
  summary: 'Does something, now; refused while the past is shown',
  params: z.strictObject({ name: z.string().regex(/^[a-z0-9-]{1,64}$/, 'the name of an action') }),
  body: z.strictObject({
    fields: z.record(z.string().max(64), z.union([z.string().max(500), z.number()])).default({}),
    at: z
      .int()
      .optional()
      .meta({ description: 'the moment that the page shows: with one the action is refused' }),
  }),
  answer: z.object({ done: z.literal(true), answer: z.unknown() }),
  async run({ params: { name }, body }, { services, source, caller, correlation, gone }) {
    if (!services) throw new ConsoleError('HF_CONSOLE_NOT_LIVE', { what: 'an action' });
    if (body.at !== undefined) throw new ConsoleError('HF_CONSOLE_PAST');
    const action = (await contributedTo(consoleActions, { services, source })).get(name)?.value;
    if (!action) throw new ConsoleError('HF_CONSOLE_MISSING', { what: 'action', name: textOf(name, 70) });
    const fields = fieldsOf(action, body.fields);
    const { actors, clock, dataDir } = services;
    const event = { type: 'ACTED', at: clock.now(), by: caller.by, action: name } as const;
    await actors.send(accessActor, ACCESS_KEY, event, { correlation }).durable();
    const signal = AbortSignal.any([gone, AbortSignal.timeout(DEADLINE_MS)]);
    const sent = action.body(fields, caller.by);
    const answer = await askInstance({ dataDir, signal }, action.operation, sent, `it has no ${name}`);
    return { done: true as const, answer: freeOf(answer) };
  },
});

/** @throws HF_CONSOLE_REQUEST a field is missing, unknown, or not of its kind */
function fieldsOf(
  { fields }: ConsoleAction,
  given: Readonly<Record<string, string | number>>,
): Record<string, string | number> {
  const unknown = Object.keys(given).find((name) => !fields.some((field) => field.name === name));
  if (unknown !== undefined) throw refused(`it has no field ${textOf(unknown, 70)}`);
  return Object.fromEntries(
    fields.flatMap((field) => {
      const value = given[field.name];
      if (value === undefined || value === '') {
        if (field.required) throw refused(`the field ${field.name} is missing`);
        return [];
      }
      return [[field.name, fieldValue(field, value)]];
    }),
  );
}

function fieldValue({ name, kind, choices = [] }: ActionField, given: string | number): string | number {
  switch (kind) {
    case 'text':
      return String(given);
    case 'number':
      if (Number.isFinite(Number(given))) return Number(given);
      throw refused(`${name} is no number`);
    case 'duration': {
      const ms = parseDuration(String(given));
      if (ms === undefined) throw refused(`${name} is no duration such as 15m`);
      return ms;
    }
    case 'choice':
      if (choices.includes(String(given))) return String(given);
      throw refused(`${name} is none of ${choices.join(', ')}`);
  }
}

const refused = (reason: string) => new ConsoleError('HF_CONSOLE_REQUEST', { reason });
