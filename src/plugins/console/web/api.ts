/** An answer that is an error: what happened, and what to do. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  readonly action: string | undefined;

  constructor(status: number, code: string, message: string, action?: string) {
    super(message);
    this.status = status;
    this.code = code;
    this.action = action;
  }
}

/** How long an answer may take, milliseconds. */
const DEADLINE_MS = 30_000;

/** One question, as it would be sent to an instance. */
export interface Question {
  readonly method: 'GET' | 'POST';
  /** With its query. */
  readonly path: string;
  readonly body?: object;
}

/** What answers questions. @throws ApiError; the signal's reason */
export type Answerer = (question: Question, signal?: AbortSignal) => Promise<unknown>;

let answerer: Answerer = askInstance;

/** Lets something else answer than the instance that the page came from: an exported page holds its log itself. */
export function answerWith(other: Answerer): void {
  answerer = other;
}

async function askInstance({ method, path, body: sent }: Question, signal?: AbortSignal): Promise<unknown> {
  const init: RequestInit = {
    method,
    headers: {
      accept: 'application/json',
      ...(sent !== undefined && { 'content-type': 'application/json' }),
    },
    ...(sent !== undefined && { body: JSON.stringify(sent) }),
  };
  const deadline = AbortSignal.timeout(DEADLINE_MS);
  let answer: Response;
  try {
    answer = await fetch(path, { ...init, signal: signal ? AbortSignal.any([signal, deadline]) : deadline });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new ApiError(
      0,
      'unreachable',
      'The instance does not answer.',
      'Is it running? The page tries again.',
    );
  }
  const text = await answer.text();
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new ApiError(answer.status, 'unreadable', `The instance answers ${answer.status} with no JSON.`);
  }
  if (answer.ok) return body;
  const { error } = body as { error?: { code?: string; message?: string; action?: string } };
  throw new ApiError(
    answer.status,
    error?.code ?? String(answer.status),
    error?.message ?? `The instance answers ${answer.status}.`,
    error?.action,
  );
}

type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/** @returns the path with those parameters that have a value */
export function withQuery(path: string, query: Query): string {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== '' && value !== false) params.set(name, String(value));
  }
  const text = params.toString();
  return text === '' ? path : `${path}?${text}`;
}

/**
 * Asks the API.
 *
 * @param path e.g. `/api/records`
 * @throws ApiError
 */
export function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return answerer({ method: 'GET', path: withQuery(path, query) }, signal) as Promise<T>;
}

/** Sends something to the API. @throws ApiError */
export function post<T>(path: string, body: object): Promise<T> {
  return answerer({ method: 'POST', path, body }) as Promise<T>;
}
