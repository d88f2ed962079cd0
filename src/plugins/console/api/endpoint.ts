import { z } from 'zod';
import type { ContributionPoint } from '../../../core/contracts/token.ts';
import type { Semaphore } from '../../../core/host/concurrency.ts';
import { textOf } from '../../../core/host/history/answer-text.ts';
import type { LogSource } from '../../../core/host/history/log-source.ts';
import type { Moments } from '../../../core/host/history/moments.ts';
import type { LogQuestion, LogQuestions } from '../../../core/host/history/questions.ts';
import type { Services } from '../../../core/host/plugin/definition.ts';
import type { HoldfastError } from '../../../core/kernel/errors/holdfast-error.ts';
import type { Caller } from '../access/access.ts';
import { ConsoleError } from '../errors.ts';
import type { MachineGraph } from '../statechart/graph.ts';

/** What all questions of one console are answered from. */
export interface ApiContext {
  readonly source: LogSource;
  /** The running instance; absent where the log is one that nothing writes. */
  readonly services?: Services | undefined;
  readonly questions: LogQuestions;
  readonly moments: Moments;
  /** The drawing of a type of actors, where the build made one of this very machine. */
  readonly drawingOf: (type: string, graph: MachineGraph) => Promise<unknown>;
  /** How many pages of plugins are made at once. */
  readonly pages: Semaphore;
}

/** One request. */
export interface ApiRequest extends ApiContext {
  readonly caller: Caller;
  readonly correlation: string;
  /** Aborted when the browser waits no more. */
  readonly gone: AbortSignal;
  /** Opens the log for this question. @throws HF_CONSOLE_DEADLINE */
  ask<T>(work: (question: LogQuestion) => Promise<T>): Promise<T>;
  /** The same for work of seconds: one at a time, so that shorter questions go on. @throws HF_CONSOLE_DEADLINE */
  askLong<T>(work: (question: LogQuestion) => Promise<T>): Promise<T>;
}

/** What a request brings, as it came. */
export interface RawInput {
  readonly params: unknown;
  readonly query: unknown;
  readonly body: unknown;
}

/** A path of the API: its schemas describe it in /api/openapi.json, and check what comes. */
export interface Endpoint<A extends z.ZodType = z.ZodType> {
  readonly method: 'GET' | 'POST';
  /** As OpenAPI has it, e.g. `/api/records/{seq}`. */
  readonly path: string;
  readonly summary: string;
  readonly params: z.ZodObject;
  readonly query: z.ZodObject;
  readonly body?: z.ZodObject | undefined;
  readonly answer: A;
  /** @throws HF_CONSOLE_REQUEST the input is not as the schemas say */
  readonly handle: (input: RawInput, request: ApiRequest) => Promise<unknown>;
}

interface Declared<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodObject, A extends z.ZodType> {
  readonly path: string;
  readonly summary: string;
  readonly params?: P;
  readonly query?: Q;
  readonly body?: B;
  readonly answer: A;
  readonly run: (
    input: { readonly params: z.output<P>; readonly query: z.output<Q>; readonly body: z.output<B> },
    request: ApiRequest,
  ) => Promise<z.input<A>>;
}

const nothing = z.strictObject({});

function endpoint<P extends z.ZodObject, Q extends z.ZodObject, B extends z.ZodObject, A extends z.ZodType>(
  method: 'GET' | 'POST',
  { path, summary, params, query, body, answer, run }: Declared<P, Q, B, A>,
): Endpoint<A> {
  return {
    method,
    path,
    summary,
    params: params ?? nothing,
    query: query ?? nothing,
    ...(method === 'POST' && { body: body ?? nothing }),
    answer,
    handle: (input, request) =>
      run(
        {
          params: parsed(params ?? nothing, input.params) as z.output<P>,
          query: parsed(query ?? nothing, input.query) as z.output<Q>,
          body: (method === 'POST' ? parsed(body ?? nothing, input.body ?? {}) : {}) as z.output<B>,
        },
        request,
      ),
  };
}

/** Declares a question. */
export function get<P extends z.ZodObject, Q extends z.ZodObject, A extends z.ZodType>(
  declared: Omit<Declared<P, Q, z.ZodObject, A>, 'body'>,
): Endpoint<A> {
  return endpoint('GET', declared);
}

/** Declares what is sent with a body. */
export function post<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodObject,
  A extends z.ZodType,
>(declared: Declared<P, Q, B, A>): Endpoint<A> {
  return endpoint('POST', declared);
}

/** @throws HF_CONSOLE_REQUEST */
function parsed(schema: z.ZodObject, value: unknown): unknown {
  const { data, error } = schema.safeParse(value);
  if (!error) return data;
  const { path = [], message = '' } = error.issues[0] ?? {};
  const reason = path.length === 0 ? message : `${path.join('.')}: ${message}`;
  throw requestRefused(reason);
}

/** The error of a request that the console does not take. */
export function requestRefused(reason: string): HoldfastError {
  return new ConsoleError('HF_CONSOLE_REQUEST', { reason: textOf(reason.replace(/\.$/, ''), 200) });
}

/** A whole number in a query or a path. */
export const whole = (least: number, most = 999_999_999_999_999) =>
  z
    .string()
    .regex(/^\d{1,15}$/, 'a whole number')
    .transform(Number)
    .pipe(z.int().min(least).max(most));

/** The moment that is shown: the newest record that counts. */
export const at = whole(1).optional();

/** `true` or `1`, as a query has it. */
export const flag = z.enum(['true', 'false', '1', '0']).transform((text) => text === 'true' || text === '1');

/** Milliseconds since 1970. */
export const time = z.number();

/** How something is. */
export const status = z.enum(['ok', 'degraded', 'failing', 'unknown']);

/**
 * What plugins brought of one kind, by name, each with the area of its plugin. Of a log that nothing writes it is what needs
 * no running plugin.
 */
export async function contributedTo<T extends { readonly name: string }>(
  point: ContributionPoint<T>,
  { services, source }: Pick<ApiContext, 'services' | 'source'>,
): Promise<ReadonlyMap<string, { readonly value: T; readonly area: string }>> {
  const { plugins, contributions } = await source.declared();
  const areas = new Map(plugins.map(({ name, about }) => [name, about?.area]));
  const declared = () =>
    contributions
      .filter((one) => one.point === point.name && one.value !== undefined)
      // A point has one type: whoever contributes to it was checked against it by the compiler.
      .map(({ owner, value }) => ({ owner, value: value as T }));
  const brought = services?.contributions(point) ?? declared();
  return new Map(brought.map(({ owner, value }) => [value.name, { value, area: areas.get(owner) ?? owner }]));
}

/** The moment that a question is about. @throws HF_LOG_RANGE there is no such record */
export function momentSeq({ log }: LogQuestion, wanted: number | undefined): number {
  const last = log.lastSeq();
  if (wanted === undefined) return last;
  return wanted > last || wanted < log.firstSeq() ? log.record(wanted).seq : wanted;
}
