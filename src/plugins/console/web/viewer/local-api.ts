import { Semaphore } from '../../../../core/host/concurrency.ts';
import type { LogSource } from '../../../../core/host/history/log-source.ts';
import { Moments } from '../../../../core/host/history/moments.ts';
import { LogQuestions } from '../../../../core/host/history/questions.ts';
import { toErrorBody } from '../../../../core/kernel/errors/holdfast-error.ts';
import type { ApiRequest, Endpoint } from '../../api/endpoint.ts';
import { QUESTIONS } from '../../api/questions.ts';
import { ConsoleError } from '../../errors.ts';
import { type Answerer, ApiError, type Question } from '../api.ts';

/** By when an answer must be there, and when a search ends with what it has; milliseconds. */
const DEADLINE_MS = 60_000;
const ENOUGH_MS = 300;
const AT_ONCE = 2;

/**
 * The API of the console, answered in the page itself by the same code from a log that the page holds.
 *
 * @param drawingOf the drawing of a type of actors, where the page has one
 */
export function answerFrom(source: LogSource, drawingOf: ApiRequest['drawingOf']): Answerer {
  const limits = {
    deadlineMs: DEADLINE_MS,
    enoughMs: ENOUGH_MS,
    atOnce: AT_ONCE,
    late: () => new ConsoleError('HF_CONSOLE_DEADLINE', { seconds: DEADLINE_MS / 1_000 }),
  };
  const parts = {
    ...{ source, drawingOf, caller: { by: 'reader' }, correlation: '' },
    questions: new LogQuestions(source, limits),
    moments: new Moments(),
    pages: new Semaphore(1),
  };
  const long = new Semaphore(1);
  return async (question, signal = new AbortController().signal) => {
    try {
      const { endpoint, input } = routed(question);
      return await endpoint.handle(input, {
        ...parts,
        gone: signal,
        ask: (work) => parts.questions.ask(work, signal),
        askLong: (work) => long.run(() => parts.questions.ask(work, signal)),
      });
    } catch (error) {
      if (signal.aborted) throw error;
      const { status, code, what, remedy } = toErrorBody(error);
      throw new ApiError(status, code, what, remedy);
    }
  };
}

/** @throws HF_CONSOLE_PATH, HF_CONSOLE_NOT_LIVE */
function routed({ method, path, body }: Question): {
  endpoint: Endpoint;
  input: Parameters<Endpoint['handle']>[0];
} {
  const { pathname, searchParams } = new URL(path, 'https://page.invalid');
  if (method === 'POST' && pathname.startsWith('/api/actions/'))
    throw new ConsoleError('HF_CONSOLE_NOT_LIVE', { what: 'an action' });
  for (const endpoint of QUESTIONS) {
    const params = endpoint.method === method ? paramsIn(endpoint.path, pathname) : undefined;
    if (params) return { endpoint, input: { params, query: Object.fromEntries(searchParams), body } };
  }
  throw new ConsoleError('HF_CONSOLE_PATH');
}

/** The parameters of a path such as `/api/records/{seq}`; undefined where it is another. */
function paramsIn(template: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [template.split('/'), path.split('/')];
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const text = given[index] ?? '';
    const name = /^\{(\w+)\}$/.exec(part)?.[1];
    if (name !== undefined) params[name] = decodeURIComponent(text);
    else if (part !== text) return undefined;
  }
  return params;
}
